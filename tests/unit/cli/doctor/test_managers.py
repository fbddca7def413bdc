"""Managers, tokens and clocks, against managers that say what a test wants."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from cli.doctor import managers
from cli.doctor.finding import Settings, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.scripted_manager import ScriptedManager

READY = {"error": "NONE"}
NOBODY = "http://127.0.0.1:1"


def refusal(code: str, message: str) -> dict[str, object]:
    return {"error": code, "message": message, "retriable": False}


def test_a_manager_that_is_ready(manager: ScriptedManager) -> None:
    """It is asked what a supervisor asks."""
    manager.on("GET", "/readyz", READY)
    assert managers.manager(Settings(manager=(manager.url,))).status is Status.OK


def test_one_of_several_that_does_not_answer_is_warned_of(manager: ScriptedManager) -> None:
    """With its reason; if none answers, that is a problem."""
    manager.on("GET", "/readyz", READY)
    some = managers.manager(Settings(manager=(manager.url, NOBODY)))
    assert (some.status, some.found) == (
        Status.WARNING,
        f"no manager answers at {NOBODY} (connection refused)",
    )
    assert managers.manager(Settings(manager=(NOBODY,))).status is Status.PROBLEM


def test_a_manager_that_is_not_ready(manager: ScriptedManager) -> None:
    """In its own words."""
    manager.on("GET", "/readyz", refusal("COORDINATOR_NOT_AVAILABLE", "the storage fails"), 503)
    finding = managers.manager(Settings(manager=(manager.url,)))
    assert (finding.status, finding.found) == (Status.PROBLEM, f"{manager.url}: the storage fails")


def test_somebody_else_s_server(manager: ScriptedManager) -> None:
    """Whoever answers need not be a manager."""
    manager.on("GET", "/readyz", "<html>")
    assert "not a sparkherd manager" in managers.manager(Settings(manager=(manager.url,))).found


def test_a_port_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the connection and says nothing: given up after the limit."""
    monkeypatch.setattr(managers, "ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = Settings(manager=(f"http://127.0.0.1:{server.getsockname()[1]}",))
        assert "(no answer in time)" in managers.manager(settings).found
        assert managers.clock(settings).status is Status.SKIPPED
        assert managers.token(settings).status is Status.SKIPPED


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """One that nobody else may read."""
    path = tmp_path / "worker.token"
    path.write_text("sh_id_secret")
    path.chmod(0o600)
    return path


PATH = "/v1/coordinator?group=flights"


def test_a_token_that_is_known(manager: ScriptedManager, token_file: Path) -> None:
    """Unless others may read its file."""
    manager.on("GET", PATH, READY)
    settings = Settings(manager=(manager.url,), group="flights", token_file=str(token_file))
    assert managers.token(settings).found == "known to the manager, for group flights"
    assert manager.headers[-1]["Authorization"] == "Bearer sh_id_secret"
    token_file.chmod(0o644)
    finding = managers.token(settings)
    assert (finding.status, finding.to_do) == (Status.WARNING, f"chmod 600 {token_file}")


def test_no_token(manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right for a manager that is open, and else told how to get one."""
    monkeypatch.delenv("SPARKHERD_TOKEN", raising=False)
    settings = Settings(manager=(manager.url,), group="flights")
    manager.on("GET", PATH, READY)
    assert managers.token(settings).found == "none given, and none needed"
    manager.on("GET", PATH, refusal("UNAUTHENTICATED", "a token is needed"), 401)
    finding = managers.token(settings)
    assert (finding.status, finding.found) == (Status.PROBLEM, "a token is needed")
    assert "tokens create --role worker --group flights NAME; then --token-file" in finding.to_do


def test_a_token_for_other_groups(manager: ScriptedManager, token_file: Path) -> None:
    """Is one for no group, where none was named."""
    denied = refusal("GROUP_AUTHORIZATION_FAILED", "not for this group")
    manager.on("GET", PATH, denied, 403)
    manager.on("GET", "/v1/coordinator?group=doctor", denied, 403)
    settings = Settings(manager=(manager.url,), group="flights", token_file=str(token_file))
    assert managers.token(settings).to_do == "take a token for group flights"
    settings = Settings(manager=(manager.url,), token_file=str(token_file))
    assert managers.token(settings).found == "known to the manager"


def test_a_manager_that_cannot_say_whether_it_knows_the_token(
    manager: ScriptedManager, token_file: Path
) -> None:
    """It is not taken for known then."""
    settings = Settings(manager=(manager.url,), group="flights", token_file=str(token_file))
    manager.on("GET", PATH, refusal("COORDINATOR_NOT_AVAILABLE", "tokens cannot be read now"), 503)
    assert (managers.token(settings).status, managers.token(settings).found) == (
        Status.SKIPPED,
        "tokens cannot be read now",
    )


@pytest.mark.parametrize(
    ("ahead_s", "status", "told"),
    [
        (0, Status.OK, "agrees"),
        (20, Status.WARNING, "s before a manager's"),
        (-3600, Status.PROBLEM, "s behind a manager's"),
    ],
)
def test_clocks_are_compared(
    manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch, ahead_s: float, status: Status, told: str
) -> None:
    """By the date of an answer."""
    monkeypatch.setattr(managers, "time", lambda: time.time() + ahead_s)
    finding = managers.clock(Settings(manager=(NOBODY, manager.url)))
    assert finding.status is status
    assert told in finding.found
