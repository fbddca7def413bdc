"""A bug in what the manager cannot be without: whoever waits is answered, and the process ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
from structlog.testing import capture_logs

from manager import daemon
from manager.runtime.writer import Writer
from manager.settings import ManagerSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TASK = {"task": "t", "definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}


async def test_a_manager_that_cannot_write_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold every request that changes anything for ever; started anew, it reads what is stored."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = ManagerSettings(listen="127.0.0.1:0", database=f"sqlite+aiosqlite:///{tmp_path}/m.db")

    async def fails(_: Writer) -> None:
        raise ValueError("nobody expected this")

    with capture_logs() as logs:
        running = asyncio.ensure_future(daemon.run(settings, started.set_result))
        async with aiohttp.ClientSession(await started) as session:
            monkeypatch.setattr(Writer, "_gather", fails)
            async with session.post("/v1/groups/g/tasks", json=TASK) as answer:
                told: dict[str, Any] = await answer.json()
        exit_code = await running
    assert told["error"] == "COORDINATOR_NOT_AVAILABLE"
    assert exit_code == 1
    [bug] = [line for line in logs if line["event"] == "bug beside the requests"]
    assert (bug["doing"], bug["ends"]) == ("writing to the storage", "the manager")
    assert bug["cause_id"]
