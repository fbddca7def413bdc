"""`sparkherd doctor` on real databases, with a real manager, and with a server that says nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

from cli.main import run
from manager.storage import sql_engines
from protocol.roles import Role
from tests.integration.manager.secured import Tokens, serving

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.integration.manager.backends import Database


async def doctor(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what each check printed; in a thread, for the manager is in this loop."""
    return await asyncio.to_thread(examined, capsys, *args)


def examined(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    """The same; what the manager has logged comes first."""
    code = run(["doctor", *args, "--json"])
    out = capsys.readouterr().out
    return code, {each["check"]: each for each in json.loads(out[out.index("{\n") :])["checks"]}


async def test_a_manager_at_work(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """It is ready, its database is up to date though in use, the clocks agree and nobody needs a token."""
    checks = ["manager", "database", "clock", "token"]
    async with serving(database.url) as url:
        code, found = await doctor(capsys, *checks, "--manager", url, "--database", database.url)
    assert (code, {name: each["status"] for name, each in found.items()}) == (0, dict.fromkeys(checks, "ok"))
    assert found["database"]["found"].endswith("up to date")


async def test_a_manager_that_asks_for_tokens(
    database: Database, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without one, with one, and with one for another group."""
    tokens = Tokens(database.url)
    file = tmp_path / "worker.token"
    file.write_text(await tokens.make(Role.WORKER, "flights"))
    file.chmod(0o600)
    async with serving(database.url) as url:
        at = ["token", "clock", "--manager", url, "--group"]
        code, found = await doctor(capsys, *at, "flights")
        assert (code, found["token"]["status"], found["clock"]["status"]) == (1, "problem", "ok")
        assert "sparkherd tokens create --role worker --group flights" in found["token"]["to_do"]
        code, found = await doctor(capsys, *at, "flights", "--token-file", str(file))
        assert (code, found["token"]["found"]) == (0, "known to the manager, for group flights")
        code, found = await doctor(capsys, *at, "trains", "--token-file", str(file))
        assert (code, found["token"]["to_do"]) == (1, "take a token for group trains")


def test_an_empty_database(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """It is left empty."""
    code, found = examined(capsys, "database", "--database", database.url)
    assert (code, found["database"]["status"]) == (0, "ok")
    assert run(["db", "status", "--database", database.url]) == 1


def test_a_database_server_that_hangs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection and says nothing: given up, with what to do."""
    monkeypatch.setattr(sql_engines, "CONNECT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql+asyncpg://me:secret@127.0.0.1:{server.getsockname()[1]}/herd"
        code, found = examined(capsys, "database", "--database", url)
    assert (code, found["database"]["status"]) == (1, "problem")
    assert found["database"]["to_do"].startswith("start the database")
    assert "secret" not in found["database"]["found"]
