"""What the manager is compared with: aiohttp on uvloop that parses the same bodies and answers constants."""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import TYPE_CHECKING

import msgspec
import uvloop
from aiohttp import web

from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    SyncRequest,
    SyncResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.messages.base import Request, Response

JOINED = JoinResponse(
    generation_id=1, protocol_type="bench", protocol_name="sticky", leader_id="leader", member_id="follower"
)
SYNCED = SyncResponse(
    protocol_type="bench", protocol_name="sticky", assignment=msgspec.Raw(b'{"tasks":["follower"]}')
)
ANSWERS: dict[str, tuple[type[Request], Response]] = {
    "heartbeat": (HeartbeatRequest, HeartbeatResponse(tasks_revision=0)),
    "join": (JoinRequest, JOINED),
    "sync": (SyncRequest, SYNCED),
}


def handler(body: type[Request], answer: Response) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Parses `body`, holds a heartbeat for as long as it asks to be held, and gives `answer`."""
    decoder = msgspec.json.Decoder(body)
    encoded = msgspec.json.encode(answer)

    async def answered(request: web.Request) -> web.Response:
        asked = decoder.decode(await request.read())
        if wait_ms := getattr(asked, "wait_ms", 0):
            await asyncio.sleep(wait_ms / 1000)
        return web.Response(body=encoded, content_type="application/json")

    return answered


async def serve(files: list[str]) -> None:
    """Serve on a free port until killed; with `files`, a certificate and its key, over TLS."""
    app = web.Application()
    for verb, (body, answer) in ANSWERS.items():
        app.router.add_post(f"/v1/groups/{{group}}/{verb}", handler(body, answer))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if files else None
    if tls:
        tls.load_cert_chain(*files)
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"listening on {'https' if tls else 'http'}://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1:]))
