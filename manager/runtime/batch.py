"""What one turn of the event loop produced: rows for one transaction, and the answers that wait for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from manager.core.rows import Change
    from manager.core.turn import Outcome, Turn
    from manager.runtime.pending import Pending


@dataclass(slots=True)
class Batch:
    """Changes by group, so that the loss of one group's memory leaves the others' work alone."""

    changes: dict[str, list[Change]] = field(default_factory=dict)
    answers: dict[str, list[tuple[Pending, Outcome]]] = field(default_factory=dict)

    def __contains__(self, group: str) -> bool:
        return group in self.changes

    def add(self, turn: Turn) -> None:
        """Take the effects of `turn` in."""
        name = turn.group.name
        self.changes.setdefault(name, []).extend(turn.changes)
        self.answers.setdefault(name, []).extend(turn.answers)  # type: ignore[arg-type]  # ours are Pending

    def all_changes(self) -> list[Change]:
        """Every change, in order within each group."""
        return [change for changes in self.changes.values() for change in changes]

    def deliver(self) -> None:
        """It is durable: send every answer."""
        for answers in self.answers.values():
            deliver(answers)

    def fail(self, group: str) -> None:
        """What was decided for `group` never became durable: nobody may hear of it."""
        self.changes.pop(group, None)
        for pending, _ in self.answers.pop(group, ()):
            pending.deliver(UNAVAILABLE)


UNAVAILABLE = Failure(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "the manager is stopping or cannot reach its database; try again"
)


def deliver(answers: list[tuple[Pending, Outcome]]) -> None:
    """Send answers, in order."""
    for pending, outcome in answers:
        pending.deliver(outcome)
