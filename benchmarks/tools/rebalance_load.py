"""Members that rejoin all at once: a load of joins and syncs that does next to nothing itself.

Each member has a connection of its own. In a round everybody sends a join with metadata that it did not have
before, so whoever comes first starts a rebalance, and the round is over when the last sync is answered. What
goes over the wire is a `Dialect`'s business: this load drives our manager and Kafka's brokers alike.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE_S = 120.0
SESSION_MS = 300_000
REST_S = 0.1
"""For the last answers to come in."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a member has to know of the answer to its join; `again` if that has only given it an id."""

    member: str
    generation: int
    leader: str
    again: bool = False


class Dialect(Protocol):
    """How to say it, and how to read what is answered; a refusal raises."""

    def join(self, group: str, member: str, round_: int) -> bytes:
        """A join with metadata of this round; `member` is empty at first."""
        ...

    def joined(self, answer: bytes) -> Joined:
        """What came of it."""
        ...

    def sync(self, group: str, joined: Joined, everyone: Sequence[str]) -> bytes:
        """A sync; `everyone` is to be given something by the leader, and is empty for the others."""
        ...

    def synced(self, answer: bytes) -> None:
        """What came of it."""
        ...

    def heartbeat(self, group: str, joined: Joined) -> bytes:
        """A plain one."""
        ...

    def beaten(self, answer: bytes) -> None:
        """What came of it."""
        ...

    def length(self, received: bytes) -> int | None:
        """How many bytes the answer has that `received` begins with; None if too few are there to tell."""
        ...


@dataclass(slots=True)
class LoadGroup:
    """The members of one group, as far as the load knows them."""

    name: str
    members: list[str] = field(default_factory=list)


class LoadMember(asyncio.Protocol):
    """One member on its connection; `done` hears of its last answer of a round."""

    def __init__(self, dialect: Dialect, group: LoadGroup, rounds: Rounds) -> None:
        self._dialect = dialect
        self._group = group
        self._rounds = rounds
        self._place = len(group.members)
        group.members.append("")
        self._received = b""
        self.answers = 0
        self._joined: Joined | None = None
        self._round = 0
        self._next: Callable[[bytes], None] = self._idle
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """A round that was not over is never to be."""
        self._rounds.failed(exc or ConnectionError("the server has closed a connection"))

    def join(self, round_: int) -> None:
        """Begin a round."""
        self._round = round_
        self._next = self._is_joined
        self._write(self._dialect.join(self._group.name, self._group.members[self._place], round_))

    def data_received(self, data: bytes) -> None:
        """Go on once the answer is complete."""
        self._received += data
        length = self._dialect.length(self._received)
        if length is None or len(self._received) < length:
            return
        answer, self._received = self._received[:length], self._received[length:]
        try:
            self._next(answer)
        except RuntimeError as error:
            self._rounds.failed(error)

    def say(self, what: Callable[[str, Joined], bytes]) -> None:
        """Something that no round waits for."""
        if self._joined:
            self._write(what(self._group.name, self._joined))

    def repeat(self, what: Callable[[str, Joined], bytes]) -> None:
        """Say it again and again, each time as soon as it is answered; `answers` counts."""
        if self._joined:
            request = what(self._group.name, self._joined)
            self._next = partial(self._is_repeated, request)
            self._write(request)

    @property
    def joined(self) -> Joined | None:
        """What it is in its group, once it has joined."""
        return self._joined

    def rest(self) -> None:
        """Say nothing more."""
        self._next = self._idle

    def _is_repeated(self, request: bytes, answer: bytes) -> None:
        self._dialect.beaten(answer)
        self.answers += 1
        self._write(request)

    def _is_joined(self, answer: bytes) -> None:
        self._joined = joined = self._dialect.joined(answer)
        self._group.members[self._place] = joined.member
        if joined.again:
            self.join(self._round)
            return
        everyone = self._group.members if joined.member == joined.leader else ()
        self._next = self._is_synced
        self._write(self._dialect.sync(self._group.name, joined, everyone))

    def _is_synced(self, answer: bytes) -> None:
        self._dialect.synced(answer)
        self._next = self._idle
        self._rounds.one_done()

    def _idle(self, _: bytes) -> None:
        """An answer that nobody waits for."""

    def _write(self, request: bytes) -> None:
        if self._transport:
            self._transport.write(request)


class Rounds:
    """One round after the other of all members of all groups.

    `spent` is the share of the last round's time in which this process was at work: well below 1, it was not
    what the round waited for.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.spent = 0.0
        self._dialect = dialect
        self._members: list[LoadMember] = []
        self._round = self._missing = 0
        self._over: asyncio.Future[float] | None = None

    async def connect(self, address: tuple[str, int], groups: int, members: int, first: int = 0) -> None:
        """A connection for each member of each group; groups are numbered from `first`."""
        loop = asyncio.get_running_loop()
        for group in [LoadGroup(f"g{number}") for number in range(first, first + groups)]:
            for _ in range(members):
                _, member = await loop.create_connection(
                    partial(LoadMember, self._dialect, group, self), *address
                )
                self._members.append(member)

    async def one(self) -> float:
        """Seconds from the first request to the last answer."""
        self._over = asyncio.get_running_loop().create_future()
        self._missing = len(self._members)
        self._round += 1
        start, worked = time.perf_counter(), time.process_time()
        for member in self._members:
            member.join(self._round)
        async with asyncio.timeout(PATIENCE_S):
            seconds = await self._over - start
        self.spent = (time.process_time() - worked) / seconds
        return seconds

    def joined(self) -> list[Joined]:
        """What the members are in their groups."""
        return [member.joined for member in self._members if member.joined]

    def say(self, what: Callable[[str, Joined], bytes]) -> None:
        """Have every member send something that no round waits for, from its group's name and its id."""
        for member in self._members:
            member.say(what)

    async def rate(self, seconds: float) -> float:
        """Heartbeats a second of all members together, each sending one after another."""
        for member in self._members:
            member.repeat(self._dialect.heartbeat)
        before, start = sum(member.answers for member in self._members), time.perf_counter()
        await asyncio.sleep(seconds)
        answers = sum(member.answers for member in self._members) - before
        rate = answers / (time.perf_counter() - start)
        for member in self._members:
            member.rest()
        await asyncio.sleep(REST_S)
        return rate

    def one_done(self) -> None:
        """A member has its assignment."""
        self._missing -= 1
        if not self._missing and self._over and not self._over.done():
            self._over.set_result(time.perf_counter())

    def failed(self, error: Exception) -> None:
        """The round cannot end."""
        if self._over and not self._over.done():
            self._over.set_exception(error)
