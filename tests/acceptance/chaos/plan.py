"""What happens in which round: most is drawn from a seed, two rounds are in every plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_WAIT_S = 2.0


class Strike(Enum):
    """What is done to the herd."""

    KILL = "worker killed"
    FREEZE = "worker frozen"
    JVM = "JVM killed"
    CUT = "worker cut off"
    SILENCE = "worker unheard"
    MANAGER = "manager killed"


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

    `whole` freezes the worker's JVM with it, as when its machine stops, and not only its Python. `database`
    is where the task writes whose batch is held.
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
        both = self.strike is Strike.FREEZE and self.whole
        return f"{self.strike.value} +JVM" if both else self.strike.value


def plan(seed: int, rounds: int) -> list[Round]:
    """`rounds` rounds that are drawn, and the two that show for sure what the fence is for.

    Every strike comes once before one comes again, and at every moment before a pair of them comes again.
    Whether a zombie gets to write then is a matter of milliseconds; in the last two it does.
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
        for number, (strike, moment) in enumerate(islice(_decks(chance), rounds), 1)
    ]
    return [
        *drawn,
        Round(rounds + 1, Strike.FREEZE, Moment.HELD, 0, chance.random(), whole=False, database="sqlite"),
        Round(rounds + 2, Strike.FREEZE, Moment.HELD, 0, chance.random(), whole=True, database="postgres"),
    ]


def _decks(chance: random.Random) -> Iterator[tuple[Strike, Moment]]:
    """All pairs in some order, each strike once in six of them, again and again."""
    drawn = [moment for moment in Moment if moment is not Moment.HELD]
    while True:
        moments = {strike: chance.sample(drawn, len(drawn)) for strike in Strike}
        for turn in range(len(drawn)):
            for strike in chance.sample(list(Strike), len(Strike)):
                yield strike, moments[strike][turn]
