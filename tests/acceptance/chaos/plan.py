"""What happens in which round, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product
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


@dataclass(frozen=True, slots=True)
class Round:
    """One round: `wait_s` seconds after the moment, to the worker at `victim` of the way through the list.

    `whole` freezes the worker's JVM with it, as when its machine stops, and not only its Python.
    """

    number: int
    strike: Strike
    moment: Moment
    wait_s: float
    victim: float
    whole: bool

    @property
    def name(self) -> str:
        """The strike in words."""
        both = self.strike is Strike.FREEZE and self.whole
        return f"{self.strike.value} +JVM" if both else self.strike.value


def plan(seed: int, rounds: int) -> list[Round]:
    """`rounds` rounds; every strike comes at every moment before a pair of them comes again."""
    chance = random.Random(seed)
    return [
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


def _decks(chance: random.Random) -> Iterator[tuple[Strike, Moment]]:
    """All pairs in some order, again and again."""
    while True:
        deck = list(product(Strike, Moment))
        chance.shuffle(deck)
        yield from deck
