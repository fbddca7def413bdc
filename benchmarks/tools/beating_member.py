"""A member that beats on a connection of its own and rejoins when it is told to, in whichever dialect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from benchmarks.tools.rebalance_load import Joined, LoadGroup

if TYPE_CHECKING:
    from benchmarks.tools.rebalance_load import Dialect

BEAT_S: Final = 0.2
"""Between two heartbeats: who is told to rejoin hears of it that much later."""
CHUNK: Final = 65_536
NOBODY: Final = Joined("", -1, "")


class BeatingMember:
    """`settled` is the generation whose assignment it has, at `settled_at` by the clock of the event loop."""

    def __init__(self, dialect: Dialect, group: LoadGroup, address: tuple[str, int]) -> None:
        self.settled = -1
        self.settled_at = 0.0
        self._dialect = dialect
        self._group = group
        self._address = address
        self._place = len(group.members)
        group.members.append("")
        self._joined = NOBODY
        self._rounds = 0
        self._task: asyncio.Task[None] | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    @property
    def leads(self) -> bool:
        """Whether it is its group's leader."""
        return self._joined.member == self._joined.leader

    async def start(self) -> None:
        """Connect, and go on in the background."""
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        self._task = asyncio.create_task(self._live())

    def die(self) -> None:
        """As its process would: the connection closes, and nothing more is said."""
        if self._task:
            self._task.cancel()
            self._writer.transport.abort()
        self._group.members[self._place] = ""

    async def _live(self) -> None:
        while True:
            await self._join()
            try:
                await self._sync()
                while True:
                    await asyncio.sleep(BEAT_S)
                    request = self._dialect.heartbeat(self._group.name, self._joined)
                    self._dialect.beaten(await self._ask(request))
            except RuntimeError:  # a rebalance: it begins anew
                continue

    async def _join(self) -> None:
        self._rounds += 1
        again = True
        while again:
            member = self._group.members[self._place]
            request = self._dialect.join(self._group.name, member, self._rounds)
            self._joined = self._dialect.joined(await self._ask(request))
            self._group.members[self._place] = self._joined.member
            again = self._joined.again

    async def _sync(self) -> None:
        everyone = [each for each in self._group.members if each] if self.leads else ()
        self._dialect.synced(await self._ask(self._dialect.sync(self._group.name, self._joined, everyone)))
        self.settled = self._joined.generation
        self.settled_at = asyncio.get_running_loop().time()

    async def _ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        received = b""
        while (length := self._dialect.length(received)) is None or len(received) < length:
            chunk = await self._reader.read(CHUNK)
            if not chunk:
                raise ConnectionError("the server has closed a connection")
            received += chunk
        return received
