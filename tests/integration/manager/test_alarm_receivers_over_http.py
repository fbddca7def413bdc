"""Receivers of alarms as a whole manager has them: its file, its log, its API, and SIGHUP."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from protocol.errors import StartupError
from protocol.roles import Role
from tests.fakes.turns import settle
from tests.integration.manager.receiver import Receiver
from tests.integration.manager.secured import Tokens, Web, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

    from tests.integration.manager.backends import Database

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
LIST = "/v1/alarms/receivers"


@pytest.fixture
async def hook() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


def declare(folder: Path, *lines: str) -> str:
    path = folder / "receivers.yaml"
    path.write_text("receivers:\n" + "".join(f"  {line}\n" for line in lines))
    return str(path)


async def test_receivers_are_listed_and_tried_by_those_who_may(
    database: Database, session: aiohttp.ClientSession, tmp_path: Path, hook: Receiver
) -> None:
    """A viewer looks, an operator tries; neither the answers nor the log have the URL."""
    path = declare(tmp_path, f"ops: {{kind: slack, url: '{hook.url}', fallback: true}}")
    tokens = Tokens(database.url)
    viewer, operator = await tokens.make(Role.VIEWER), await tokens.make(Role.OPERATOR)
    with capture_logs() as logs:
        async with serving(database.url, alarm_receivers=path) as url:
            web = Web(session, url)
            listed = await web.ask("GET", LIST, viewer)
            denied, _ = await web.ask("POST", f"{LIST}/ops/test", viewer)
            tested = await web.ask("POST", f"{LIST}/ops/test", operator)
            hook.always = 410
            refused = await web.ask("POST", f"{LIST}/ops/test", operator)
            status, unknown = await web.ask("POST", f"{LIST}/dev/test", operator)
    shown = {"name": "ops", "kind": "slack", "fallback": True, "state": "new", "since_ms": None}
    assert listed == (200, {"error": "NONE", "receivers": [{**shown, "last_error": None}]})
    assert denied == 403
    assert tested == (200, {"error": "NONE", "delivered": True, "reason": None})
    assert refused == (200, {"error": "NONE", "delivered": False, "reason": "HTTP 410"})
    assert (status, unknown["error"]) == (404, "NOT_FOUND")
    assert unknown["message"] == "receiver: there is none of that name; there are ops"
    assert b"this is a test" in hook.got[0].body
    assert "secret-path" not in repr((listed, tested, refused, unknown, logs))


async def test_a_manager_with_a_bad_file_does_not_start(database: Database, tmp_path: Path) -> None:
    """It says which field is wrong."""
    path = declare(tmp_path, "ops: {kind: slack}")
    with pytest.raises(StartupError, match=r"^--alarm-receivers .*: receivers\.ops\.url: is required$"):
        async with serving(database.url, alarm_receivers=path):
            pass


async def test_a_hangup_has_the_file_read_again(
    database: Database, session: aiohttp.ClientSession, tmp_path: Path, hook: Receiver
) -> None:
    """Without TLS, too; a file that is of no use changes nothing, and is told."""
    path = declare(tmp_path, f"ops: {{kind: slack, url: '{hook.url}'}}")

    async def names() -> list[str]:
        _, listed = await Web(session, url).ask("GET", LIST)
        return [each["name"] for each in listed["receivers"]]

    with capture_logs() as logs:
        async with serving(database.url, alarm_receivers=path) as url:
            declare(tmp_path, f"dev: {{kind: slack, url: '{hook.url}'}}")
            os.kill(os.getpid(), signal.SIGHUP)
            while await names() != ["dev"]:
                await settle()
            declare(tmp_path, "ops: {kind: slakc}")
            os.kill(os.getpid(), signal.SIGHUP)
            while not any("cannot be read again" in line["event"] for line in logs):
                await settle()
            assert await names() == ["dev"]


async def test_receivers_that_rules_name_and_no_file_has_are_told_in_the_log(
    database: Database, session: aiohttp.ClientSession, tmp_path: Path, hook: Receiver
) -> None:
    """At the start, and when the file is read again: nobody would hear of these alarms."""

    def missing() -> list[object]:
        return [line["receivers"] for line in logs if "receivers that are not in" in line["event"]]

    path = declare(tmp_path, *(f"{name}: {{kind: slack, url: '{hook.url}'}}" for name in ("ops", "dev")))
    rules = [
        {"name": "a", "kind": "failed", "receivers": ["ops", "dev"]},
        {"name": "b", "kind": "stuck", "threshold": 1, "receivers": ["dev"], "enabled": False},
    ]
    with capture_logs() as logs:
        async with serving(database.url, alarm_receivers=path) as url:
            assert (await Web(session, url).ask("PUT", "/v1/alarms/rules", body={"rules": rules}))[0] == 200
            assert missing() == []
            declare(tmp_path, f"dev: {{kind: slack, url: '{hook.url}'}}")
            os.kill(os.getpid(), signal.SIGHUP)
            while not missing():
                await settle()
            assert missing() == ["ops"]
        async with serving(database.url):
            assert missing() == ["ops", "dev, ops"]
