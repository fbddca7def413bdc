"""A session that somebody closes while another one has the server do something in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.integration.spark.connect.conftest import ServerStage
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connect_server import ConnectServer
    from worker.spark.engine import SparkEngine

pytestmark = pytest.mark.spark


async def test_whoever_waits_there_is_told_that_it_is_closed(
    server: ConnectServer, remote: SparkEngine, tmp_path: Path
) -> None:
    """The server lets go of the call without a reason; asked again, it says which."""
    del remote
    stage, session_id = ServerStage(tmp_path), str(uuid4())
    waiting = asyncio.create_task(asyncio.to_thread(_wait_in, server.url, session_id, str(tmp_path)))
    await stage.until_reached()
    await asyncio.to_thread(end_session, open_session(server.url, session_id))
    with pytest.raises(SessionClosedError):
        await waiting


def _wait_in(url: str, session_id: str, stage: str) -> None:
    """Have the server do something that it does not come to the end of."""

    def held(frames: Any) -> Any:
        with open(f"{stage}/reached", "w") as reached:  # noqa: PTH123 - it is run in the server's Python
            reached.write("here")
        with open(f"{stage}/go_on") as go_on:  # noqa: PTH123
            go_on.read()
        yield from frames

    session = open_session(url, session_id)
    try:
        with asking():
            session.range(0, 1, 1, 1).mapInPandas(held, "id long").collect()
    finally:
        end_session(session, release=False)
