"""Which rows of Kafka's topics a check looks at: a few of each partition, at one end; rules without I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from worker.lag.subscription import assigned_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from protocol.messages.checks import Begin
    from worker.lag.measure import PartitionState

    Topics = Mapping[str, Mapping[int, PartitionState]]

_PLACES: Final = ("starting", "ending")
"""What Spark's options begin with that say where a source begins and ends."""


class Window(NamedTuple):
    """Offsets by topic and partition: the first one of each, and the one after the last."""

    starting: dict[str, dict[str, int]]
    ending: dict[str, dict[str, int]]

    @property
    def rows(self) -> int:
        """How many offsets there are in it."""
        return sum(
            end - self.starting[topic][number]
            for topic, partitions in self.ending.items()
            for number, end in partitions.items()
        )


def window(topics: Topics, options: Mapping[str, Any], begin: Begin, most: int) -> Window | None:
    """About `most` offsets at one end of the partitions that a source reads, the same number of each.

    Returns:
        None if there is no partition.
    """
    meant = assigned_of(options)
    places = {
        (topic, number): state
        for topic, partitions in topics.items()
        for number, state in partitions.items()
        if meant is None or number in meant.get(topic, ())
    }
    if not places:
        return None
    each = max(most // len(places), 1)
    made = Window({}, {})
    for (topic, number), state in places.items():
        first, last = _ends(state, begin, each)
        made.starting.setdefault(topic, {})[str(number)] = first
        made.ending.setdefault(topic, {})[str(number)] = last
    return made


def _ends(state: PartitionState, begin: Begin, each: int) -> tuple[int, int]:
    if begin == "beginning":
        return state.begin, max(state.begin, min(state.begin + each, state.end))
    return max(state.begin, state.end - each), max(state.begin, state.end)


def with_window(options: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """The source's options with that window, in place of what they say themselves; without one, all of it."""
    kept = {name: value for name, value in options.items() if not _says_where(name)}
    if window is None:
        return {**kept, "startingOffsets": "earliest", "endingOffsets": "latest"}
    return {
        **kept,
        "startingOffsets": json.dumps(window.starting),
        "endingOffsets": json.dumps(window.ending),
    }


def _says_where(name: str) -> bool:
    lowered = name.lower()
    return lowered.startswith(_PLACES) and ("offset" in lowered or "timestamp" in lowered)
