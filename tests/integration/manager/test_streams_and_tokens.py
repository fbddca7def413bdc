"""A stream of events is a request that lasts: it may go on for as long as it might begin."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from manager.access.authorizer import Authorizer
from manager.access.tokens import mint
from manager.http import revocation
from manager.http.front.limits import Limits
from protocol.roles import Role
from tests.fakes.turns import PATIENCE_S
from tests.integration.manager.clients import serving

if TYPE_CHECKING:
    from pathlib import Path

    from manager.access.tokens import AccessToken

STREAM = {"Accept": "text/event-stream"}


class Clock:
    """Milliseconds that pass when a test says so."""

    now_ms = 1000


def _minted(**more: Any) -> tuple[str, AccessToken]:
    chosen = {"role": Role.VIEWER, "groups": (), **more}
    return mint(secrets.token_bytes, name="anna", created_at_ms=0, **chosen)


@pytest.fixture(autouse=True)
def _looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a second for the next look."""
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 0.01)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"revoked_at_ms": 1}, 401),
        ({"expires_at_ms": 5000}, 401),
        ({"role": Role.WORKER}, 403),
        ({"groups": ("other",)}, 403),
        (None, 401),
    ],
    ids=["revoked", "expired", "another role", "other groups", "forgotten"],
)
async def test_a_stream_ends_with_the_right_to_it(
    tmp_path: Path, change: dict[str, Any] | None, status: int
) -> None:
    """In order, so that the reader comes back and is told why; another one's goes on."""
    clock = Clock()
    (text, token), (other_text, other) = _minted(), _minted()
    access = Authorizer(lambda: clock.now_ms)
    access.learn([token, other])
    async with (
        serving(tmp_path, Limits(), access=access) as served,
        aiohttp.ClientSession(served.url) as session,
        session.get("/v1/events?group=g", headers=_with(text)) as stream,
        session.get("/v1/events?group=g", headers=_with(other_text)) as others,
        asyncio.timeout(PATIENCE_S),
    ):
        for each in (stream, others):
            assert await each.content.readuntil(b"\n\n") == b": nothing new\nid: 1\n\n"
        access.learn([other, *([] if change is None else [msgspec.structs.replace(token, **change)])])
        clock.now_ms = 5000
        assert await stream.content.read() == b""
        async with session.get("/v1/events?group=g", headers=_with(text)) as answer:
            assert answer.status == status
        task = {"task": "t", "definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}
        admin_text, admin = _minted(role=Role.ADMIN)
        access.learn([other, admin])
        async with session.post("/v1/groups/g/tasks", json=task, headers=_with(admin_text)) as answer:
            assert answer.status == 201
        assert b"task.created" in await others.content.readuntil(b"\n\n")


def _with(text: str) -> dict[str, str]:
    return {**STREAM, "Authorization": f"Bearer {text}"}


async def test_a_stream_without_a_token_ends_with_the_first_token(tmp_path: Path) -> None:
    """A manager that was open to all is not any more."""
    access = Authorizer(lambda: 0, open_without_tokens=True)
    async with (
        serving(tmp_path, Limits(), access=access) as served,
        aiohttp.ClientSession(served.url) as session,
        session.get("/v1/events", headers=STREAM) as stream,
        asyncio.timeout(PATIENCE_S),
    ):
        await stream.content.readuntil(b"\n\n")
        access.learn([_minted()[1]])
        assert await stream.content.read() == b""
