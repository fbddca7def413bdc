"""What happens in which round: most is drawn from a seed, two rounds are in every plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_WAIT_S = 2.0


class Source(Enum):
    """What the tasks read."""

    FILES = "files"
    KAFKA = "kafka"


class Strike(Enum):
    """What is done to the herd, or to the broker it reads from."""

    KILL = "worker killed"
    FREEZE = "worker frozen"
    JVM = "JVM killed"
    CUT = "worker cut off"
    SILENCE = "worker unheard"
    MANAGER = "manager killed"
    BROKER = "broker killed"
    BROKER_FROZEN = "broker frozen"
    PARTITION = "partition added"
    RETENTION = "retention running"


Weights: TypeAlias = "Mapping[Strike, int]"
"""How often each strike comes before all have come."""

ON_THE_HERD: Final[Weights] = dict.fromkeys(
    (Strike.KILL, Strike.FREEZE, Strike.JVM, Strike.CUT, Strike.SILENCE, Strike.MANAGER), 1
)
ON_THE_BROKER: Final[Weights] = dict.fromkeys(
    (Strike.BROKER, Strike.BROKER_FROZEN, Strike.PARTITION, Strike.RETENTION), 2
)
WEIGHTS: Final[Mapping[Source, Weights]] = {
    Source.FILES: ON_THE_HERD,
    Source.KAFKA: {**ON_THE_HERD, **ON_THE_BROKER},
}


class Moment(Enum):
    """When it is done."""

    ANY = "at any time"
    IN_BATCH = "inside a batch"
    AT_WRITE = "before the commit"
    """Inside a batch that waits for the sink, whose lock somebody else holds."""
    HELD = "past its lease"
    """Inside a batch that has passed all checks of the lease; it goes on when another owner has done it."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round: `wait_s` seconds after the moment, to the worker at `victim` of the way through the list.

    `whole` freezes the worker's JVM with it, as when its machine stops, and not only its Python; of what is
    done to the broker, that the worker is killed at the same time. `database` is where the task writes whose
    batch is held.
    """

    number: int
    strike: Strike
    moment: Moment
    wait_s: float
    victim: float
    whole: bool
    database: str = ""

    @property
    def name(self) -> str:
        """The strike in words."""
        more = _WITH.get(self.strike) if self.whole else None
        return f"{self.strike.value} +{more}" if more else self.strike.value


_WITH: Final[Mapping[Strike, str]] = {Strike.FREEZE: "JVM", **dict.fromkeys(ON_THE_BROKER, "worker")}


def plan(seed: int, rounds: int, weights: Weights = ON_THE_HERD) -> list[Round]:
    """`rounds` rounds that are drawn, and the two that show for sure what the fence is for.

    Every strike of `weights` comes as often as it weighs before all begin anew, and at every moment before a
    pair of them comes again. Whether a zombie gets to write then is a matter of milliseconds; in the last two
    it does.
    """
    chance = random.Random(seed)
    drawn = [
        Round(
            number=number,
            strike=strike,
            moment=moment,
            wait_s=chance.uniform(0, LONGEST_WAIT_S if moment is Moment.ANY else 0.1),
            victim=chance.random(),
            whole=chance.random() < 0.5,
        )
        for number, (strike, moment) in enumerate(islice(_decks(chance, weights), rounds), 1)
    ]
    return [
        *drawn,
        Round(rounds + 1, Strike.FREEZE, Moment.HELD, 0, chance.random(), whole=False, database="sqlite"),
        Round(rounds + 2, Strike.FREEZE, Moment.HELD, 0, chance.random(), whole=True, database="postgres"),
    ]


def _decks(chance: random.Random, weights: Weights) -> Iterator[tuple[Strike, Moment]]:
    """All pairs in some order, each strike by its weight in as many of them as there are, again and again."""
    drawn = [moment for moment in Moment if moment is not Moment.HELD]
    deck = [strike for strike, weight in weights.items() for _ in range(weight)]
    while True:
        moments = {strike: cycle(chance.sample(drawn, len(drawn))) for strike in weights}
        for _ in drawn:
            for strike in chance.sample(deck, len(deck)):
                yield strike, next(moments[strike])
