"""The members of one group of a cluster of Kafka's brokers, who look for their coordinator as clients do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from benchmarks.peers.kafka_dialect import Coordinator, KafkaDialect, find_coordinator
from benchmarks.tools.rebalance_load import Rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.brokers import Address
    from benchmarks.tools.rebalance_load import Joined

GROUP = "g0"
BACKOFF_S = 0.1
"""`retry.backoff.ms` of Kafka's clients."""
ANSWER_S = 2.0
CHUNK = 4096


class KafkaMembers:
    """Each has a connection of its own; `settle` comes first."""

    def __init__(self) -> None:
        self._dialect = KafkaDialect()
        self._rounds = Rounds(self._dialect)

    async def settle(self, address: Address, count: int) -> None:
        """Bring the group to Stable, on its coordinator."""
        await self._rounds.connect(address, 1, count)
        await self._rounds.one()

    async def heard(self, places: Sequence[Address]) -> float:
        """When the last of them had a heartbeat accepted, by whom one of `places` names."""
        joined = self._rounds.joined()
        beats = (self._beat(places, number, each) for number, each in enumerate(joined))
        return max(await asyncio.gather(*beats))

    async def _beat(self, places: Sequence[Address], number: int, joined: Joined) -> float:
        while True:
            try:
                await self._try(places[number % len(places)], joined)
            except (OSError, RuntimeError):
                number += 1
                await asyncio.sleep(BACKOFF_S)
            else:
                return time.monotonic()

    async def _try(self, place: Address, joined: Joined) -> None:
        async with asyncio.timeout(ANSWER_S):
            named = Coordinator.read(await _asked(place, find_coordinator(GROUP)))
            beat = self._dialect.heartbeat(GROUP, joined)
            self._dialect.beaten(await _asked((named.host, named.port), beat))


async def _asked(place: Address, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(request)
        answer = await reader.read(CHUNK)
    finally:
        writer.close()
    if not answer:
        raise ConnectionError("no answer")
    return answer
