"""What the chaos run has to say, line by line and in all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.acceptance.chaos.balance import Balance

if TYPE_CHECKING:
    from tests.acceptance.chaos.plan import Round

HEAD = (
    f"{'round':>5} {'strike':<24} {'moment':<17} {'victim':<7} {'moved':>5} {'by fence':>8} {'by lease':>8}"
    f" {'rows in':>9} {'lost':>5} {'twice':>5} {'s':>5}  commit"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One round: `moved` counts new tokens, `by_fence` and `by_lease` the zombies' writes refused.

    `commit` is what became of the commit that was held, at its first try.
    """

    planned: Round
    victim: str
    moved: int
    by_fence: int
    by_lease: int
    rows: int
    balance: Balance
    seconds: float
    commit: str = ""

    def __str__(self) -> str:
        planned = self.planned
        return (
            f"{planned.number:>5} {planned.name:<24} {planned.moment.value:<17} {self.victim:<7}"
            f" {self.moved:>5} {self.by_fence:>8} {self.by_lease:>8} {self.rows:>9,} {self.balance.lost:>5}"
            f" {self.balance.twice:>5} {self.seconds:>5.0f}  {self.commit}{self._misplaced}"
        ).rstrip()

    @property
    def _misplaced(self) -> str:
        return f" misplaced {self.balance.misplaced}" if self.balance.misplaced else ""


@dataclass(slots=True)
class Report:
    """All rounds, and what was in the databases at the end; `notes` tell of the source and of the sinks.

    `faults` are counts of tasks that cannot be. `before` has what `places` had before the first replay.
    """

    seed: int
    fenced: bool
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    lines: list[Line] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    balance: dict[str, Balance] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    @property
    def total(self) -> Balance:
        """Over all places."""
        return sum(self.balance.values(), Balance())

    @property
    def places(self) -> tuple[str, ...]:
        """What is to be in each of them, and what is not as it is to be."""
        return tuple(f"{name}: rows in {self.rows[name]:,}, {found}" for name, found in self.balance.items())

    def __str__(self) -> str:
        strikes = Counter(line.planned.strike.value for line in self.lines)
        refused = sum(line.by_fence for line in self.lines), sum(line.by_lease for line in self.lines)
        seconds = sum(line.seconds for line in self.lines)
        fence = "on" if self.fenced else "OFF"
        return "\n".join(
            [
                f"seed {self.seed}, {len(self.lines)} rounds, {seconds:.0f} s, fence {fence}",
                ", ".join(f"{what} {count}" for what, count in sorted(strikes.items())),
                f"zombies' writes refused: {refused[0]} by the fence, {refused[1]} by their lease",
                *self.notes,
                *(f"before the replays: {told}" for told in self.before),
                *self.places,
                *(f"told wrongly: {fault}" for fault in self.faults),
            ]
        )
