"""What heartbeats are compared with: aiohttp on uvloop that parses the same body and answers a constant."""

from __future__ import annotations

import asyncio

import msgspec
import uvloop
from aiohttp import web

from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse

ANSWER = msgspec.json.encode(HeartbeatResponse(tasks_revision=0))
DECODER = msgspec.json.Decoder(HeartbeatRequest)


async def heartbeat(request: web.Request) -> web.Response:
    """Parse and answer."""
    DECODER.decode(await request.read())
    return web.Response(body=ANSWER, content_type="application/json")


async def serve() -> None:
    """Serve on a free port until killed."""
    app = web.Application()
    app.router.add_post("/v1/groups/{group}/heartbeat", heartbeat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
