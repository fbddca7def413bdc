"""Where the processor time of a heartbeat goes: the whole of it asked of a manager, its steps one by one.

A manager in this process has one member, and does each step of that member's heartbeat many times in a row,
on the very objects of its connection; the rest of it is aiohttp's, the event loop's and the system's.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.heartbeat_load import CONNECTIONS, GROUP, beats, processor_time, rate, settled
from benchmarks.tools.load import END_OF_HEAD, request
from benchmarks.tools.servers import ServerProcess, free_port
from benchmarks.tools.servers import manager as manager_process
from cli.client.admin_client import path_of
from manager import daemon
from manager.http.front.channel import Channel
from manager.http.front.nesting import MAX_DEPTH, is_deeper_than
from manager.http.front.replying import reply
from manager.runtime.replies import Reply
from manager.settings import ManagerSettings
from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from manager.core.turn import Outcome

TIMES = 2_000
ROUNDS = 7
WHAT = "processor time of a heartbeat: "
OK = HeartbeatResponse(tasks_revision=0)


def measure() -> Iterator[ResultLine]:
    """Microseconds of each part; the first line is all of them."""
    whole = _whole()
    steps = uvloop.run(_steps())
    user, system = summary([each[0] for each in whole]), summary([each[1] for each in whole])
    rest = user[0] - sum(taken for taken, _ in steps.values())
    yield _line("all of it", *summary([sum(each) for each in whole]))
    yield _line("the system's, to send and receive", *system)
    for step, (taken, spread) in steps.items():
        yield _line(step, taken, spread)
    yield _line("aiohttp's and the event loop's, and who may ask", rest, user[1])


def _line(what: str, taken: float, spread: float) -> ResultLine:
    return ResultLine(WHAT + what, None, taken, spread, "µs")


def _whole() -> list[tuple[float, float]]:
    """User's and system's microseconds of a manager for each heartbeat, several times."""
    with manager_process() as server:
        bodies = beats(settled(server, CONNECTIONS))
        rate(server, bodies)
        return [processor_time(server, bodies) for _ in range(ROUNDS)]


async def _steps() -> dict[str, tuple[float, float]]:
    """Medians of each."""
    url = f"http://127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        settings = ManagerSettings(
            listen=url.removeprefix("http://"),
            database=f"sqlite+aiosqlite:///{folder}/manager.db",
            initial_rebalance_delay_ms=0,
        )
        up = asyncio.Event()
        running = asyncio.create_task(daemon.run(settings, lambda _: up.set()))
        await up.wait()
        try:
            return await _timed(url)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def _timed(url: str) -> dict[str, tuple[float, float]]:
    none: Any = None
    server = ServerProcess(none, url)
    (body,) = beats(await asyncio.to_thread(settled, server, 1))
    host, port = server.address
    data = request(host, path_of("groups", GROUP, "heartbeat"), body)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(data)
    await reader.read(1)
    steps = _calls(_channel(), data)
    taken = {name: [_microseconds(call) for _ in range(ROUNDS)] for name, call in steps.items()}
    writer.close()
    return {name: summary(each) for name, each in taken.items()}


def _channel() -> Channel:
    """The one that is open."""
    return [one for one in gc.get_objects() if isinstance(one, Channel) and one.link.is_open][-1]


def _calls(channel: Channel, data: bytes) -> Mapping[str, Callable[[], object]]:
    """The steps, as the endpoint takes them."""
    _, _, body = data.partition(END_OF_HEAD)
    decode = msgspec.json.Decoder(HeartbeatRequest).decode
    asked = decode(body)
    runtime: Any = channel._shared.core  # noqa: SLF001 - what it is put to is to be timed
    return {
        "its body": lambda: (decode(body), is_deeper_than(MAX_DEPTH, body)),
        "the group, its session, the lease": lambda: runtime.put(GROUP, asked, Nobody(channel.link)),
        "the answer": lambda: reply(OK),
        "counting it for /metrics": lambda: runtime.meter.answered(HeartbeatRequest, OK),
    }


class Nobody(Reply):
    """Does not want to know."""

    def deliver(self, outcome: Outcome) -> None:
        """Nothing."""


def _microseconds(call: Callable[[], object]) -> float:
    """Processor time of one of many."""
    start = time.process_time()
    for _ in range(TIMES):
        call()
    return (time.process_time() - start) / TIMES * 1e6
