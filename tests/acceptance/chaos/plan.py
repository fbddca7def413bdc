"""What happens in which round: most is drawn from a seed, the last two rounds are in every plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_WAIT_S = 2.0


class Source(Enum):
    """What the tasks read."""

    FILES = "files"
    KAFKA = "kafka"


class Into(Enum):
    """What the tasks write into."""

    SQL = "sql"
    DELTA = "delta"
    ICEBERG = "iceberg"


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
    TWO_OWNERS = "two owners"
    """A worker that is cut off, and its successor, have a commit under way each; both go on at once."""
    RESET = "frozen, reset"
    """Frozen, and thawed when its task was stopped, reset and started again."""


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


ON_A_LAKE: Final[Weights] = {
    **dict.fromkeys((Strike.KILL, Strike.CUT, Strike.SILENCE, Strike.MANAGER), 1),
    **dict.fromkeys((Strike.JVM, Strike.TWO_OWNERS, Strike.RESET), 2),
    Strike.FREEZE: 3,
}


class Moment(Enum):
    """When it is done."""

    ANY = "at any time"
    IN_BATCH = "inside a batch"
    AT_WRITE = "before the commit"
    """Inside a batch that waits for the sink, whose lock somebody else holds."""
    HELD = "past its lease"
    """Inside a batch that has passed all checks of the lease; it goes on when another owner has done it."""
    WRITTEN = "files written"
    """A commit of one task is held that has all its files, and none of them in the table."""
    COMMITTING = "inside the commit"
    """It is held when Delta's log, or Iceberg's catalog, has it, and nobody was told."""
    ASIDE_WRITTEN = "aside: written"
    """The same of the commit that puts rows aside elsewhere, before the others are written."""
    ASIDE_COMMITTING = "aside: inside"
    BETWEEN = "rows put aside"
    """Inside a batch whose bad rows are put aside elsewhere, and whose others are not written."""
    REPLAY = "replay: moving"
    """Rows that are played again are computed, and neither in the sink nor out of the quarantine."""
    REPLAY_WRITTEN = "replay: written"
    """The commit of rows that are played again is held where others are."""
    REPLAY_COMMITTING = "replay: inside"
    """The same; the rows are not out of the quarantine yet."""


AIMED: Final = (Moment.WRITTEN, Moment.COMMITTING)
IN_QUARANTINE: Final[Mapping[Moment, Moment]] = {
    Moment.ASIDE_WRITTEN: Moment.WRITTEN,
    Moment.ASIDE_COMMITTING: Moment.COMMITTING,
}
"""Moments of a commit into a quarantine, and those of any commit that they are."""
IN_COMMIT: Final = (*AIMED, *IN_QUARANTINE)
OF_REPLAYS: Final[Mapping[Moment, Moment]] = {
    Moment.REPLAY: Moment.HELD,
    Moment.REPLAY_WRITTEN: Moment.WRITTEN,
    Moment.REPLAY_COMMITTING: Moment.COMMITTING,
}
"""Moments of a replay, and those of any batch that they are."""
IN_PYTHON: Final = (Moment.HELD, Moment.BETWEEN)
"""Where the worker's own Python holds a batch."""
_AIMED_ONLY: Final = {Strike.TWO_OWNERS, Strike.RESET}


class Last(NamedTuple):
    """A freeze at the end of a plan, which gets a zombie to write whatever the timing."""

    moment: Moment
    whole: bool
    database: str


class Script(NamedTuple):
    """What a plan is drawn from: strikes, when they are done, and what comes last."""

    weights: Weights
    moments: tuple[Moment, ...]
    last: tuple[Last, ...]

    def moments_of(self, strike: Strike) -> list[Moment]:
        """When this one can be done."""
        return [each for each in self.moments if strike not in _AIMED_ONLY or each in IN_COMMIT]


def script(
    source: Source = Source.FILES, into: Into = Into.SQL, *, fenced: bool = True, bad_rows: bool = False
) -> Script:
    """What can happen to tasks from there into that.

    Spark's own sinks into a lake, the control run, are frozen where their files are written: nobody says of
    them which of their writes were refused, and what they do is counted in rows.
    """
    if into is Into.SQL:
        held = ((False, "sqlite"), (True, "postgres"))
        last = tuple(Last(Moment.HELD, whole, database) for whole, database in held)
        return Script(WEIGHTS[source], (Moment.ANY, Moment.IN_BATCH, Moment.AT_WRITE), last)
    last = tuple(Last(Moment.WRITTEN, whole, into.value) for whole in (False, True))
    if not fenced:
        return Script({Strike.FREEZE: 1}, (Moment.WRITTEN,), last)
    weights = {**WEIGHTS[source], **ON_A_LAKE}
    moments: tuple[Moment, ...] = (Moment.ANY, Moment.IN_BATCH, *AIMED)
    if bad_rows:
        moments = (*moments, Moment.BETWEEN, *IN_QUARANTINE)
        last = tuple(
            Last(moment, whole=True, database=into.value) for moment in (Moment.ASIDE_WRITTEN, Moment.BETWEEN)
        )
    return Script(weights, moments, last)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: `wait_s` seconds after the moment, to the worker at `victim` of the way through the list.

    `whole` freezes the worker's JVM with it, as when its machine stops, and not only its Python; of what is
    done to the broker, that the worker is killed at the same time; with two owners, that it is the next one's
    claim which is held. `database` is where the task appends whose batch is held; empty if it may be any.
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


_WITH: Final[Mapping[Strike, str]] = {
    Strike.FREEZE: "JVM",
    Strike.RESET: "JVM",
    Strike.TWO_OWNERS: "claim",
    **dict.fromkeys(ON_THE_BROKER, "worker"),
}


def plan(seed: int, rounds: int, drawn_from: Script) -> list[Round]:
    """`rounds` rounds that are drawn, and those that show for sure what the fence is for.

    Every strike of the script comes as often as it weighs before all begin anew, and at every moment before a
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
        for number, (strike, moment) in enumerate(islice(_decks(chance, drawn_from), rounds), 1)
    ]
    last = [
        Round(number, Strike.FREEZE, each.moment, 0, chance.random(), each.whole, each.database)
        for number, each in enumerate(drawn_from.last, rounds + 1)
    ]
    return drawn + last


def _decks(chance: random.Random, drawn_from: Script) -> Iterator[tuple[Strike, Moment]]:
    """All pairs in some order, each strike by its weight in as many of them as there are, again and again."""
    deck = [strike for strike, weight in drawn_from.weights.items() for _ in range(weight)]
    while True:
        moments = {
            strike: cycle(chance.sample(can, len(can)))
            for strike, can in ((each, drawn_from.moments_of(each)) for each in drawn_from.weights)
        }
        for _ in drawn_from.moments:
            for strike in chance.sample(deck, len(deck)):
                yield strike, next(moments[strike])


STRIKES_AT_REPLAYS: Final[Mapping[Into, tuple[tuple[Strike, Moment], ...]]] = {
    Into.SQL: ((Strike.KILL, Moment.REPLAY), (Strike.FREEZE, Moment.REPLAY)),
    Into.DELTA: (
        (Strike.KILL, Moment.REPLAY_COMMITTING),
        (Strike.FREEZE, Moment.REPLAY_WRITTEN),
        (Strike.JVM, Moment.REPLAY_WRITTEN),
    ),
}
"""While the rows of one task each are played again: whoever does so dies, or goes on when another one has."""


def replays(into: Into, rounds_before: int) -> list[Round]:
    """The rounds behind all others: each of another task, by its place among them."""
    struck = STRIKES_AT_REPLAYS[into]
    return [
        Round(rounds_before + 1 + at, strike, moment, 0, at / len(struck), whole=into is not Into.SQL)
        for at, (strike, moment) in enumerate(struck)
    ]
