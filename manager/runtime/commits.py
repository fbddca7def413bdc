"""Which answers wait for which rows: none leaves before all its group's rows so far are durable. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.member import Parked
    from manager.core.stored_rows import Record
    from manager.core.turn import Outcome, Turn

    Answer = tuple[Parked, Outcome]


@dataclass(slots=True)
class Commit:
    """What goes into one transaction, by group, and the answers that wait for it."""

    changes: dict[str, list[Record]] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    rows: int = 0

    def __contains__(self, group: str) -> bool:
        return group in self.changes

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with rows in it."""
        return tuple(self.changes)

    @property
    def has_events(self) -> bool:
        """Whether there are events in it."""
        return any(isinstance(change, Event) for changes in self.changes.values() for change in changes)

    def add(self, turn: Turn) -> None:
        """Take the effects of `turn` in."""
        name = turn.group.name
        self.rows += len(turn.changes)
        self.changes.setdefault(name, []).extend(turn.changes)
        self.answers.setdefault(name, []).extend(turn.answers)

    def remove(self, group: str) -> list[Answer]:
        """Take a group's rows out; its answers must not be given any more."""
        self.rows -= len(self.changes.pop(group, ()))
        return self.answers.pop(group, [])

    def all_changes(self) -> list[Record]:
        """Everything to write, in order within each group."""
        return [change for changes in self.changes.values() for change in changes]

    def all_answers(self) -> list[Answer]:
        """Every answer, in order within each group."""
        return [answer for answers in self.answers.values() for answer in answers]


class Commits:
    """One transaction at a time; while it is under way, the next one gathers.

    A group is *lost* when its memory is not to be trusted: a transaction failed that its later decisions
    built on, or a rule raised. It is taken up again from storage once none of its rows is on the way there.
    """

    def __init__(self) -> None:
        self._gathering = Commit()
        self._committing = Commit()
        self._lost: dict[str, None] = {}

    @property
    def has_work(self) -> bool:
        """Whether there is something to commit."""
        return bool(self._gathering.changes)

    @property
    def rows(self) -> int:
        """How many changes of rows the next transaction will have, events included."""
        return self._gathering.rows

    def is_lost(self, group: str) -> bool:
        """Whether the group is out of memory and waits to be read again."""
        return group in self._lost

    def take(self, turn: Turn) -> Sequence[Answer]:
        """Keep what `turn` decided; returns the answers that need not wait for any row."""
        name = turn.group.name
        if turn.changes or name in self._gathering:
            self._gathering.add(turn)
        elif name in self._committing:
            self._committing.add(turn)
        else:
            return turn.answers
        return ()

    def begin(self) -> Commit:
        """What goes into the next transaction; `committed` or `failed` has to follow."""
        self._committing, self._gathering = self._gathering, Commit()
        return self._committing

    def gathered(self) -> tuple[str, ...]:
        """The groups with rows that go into the next transaction."""
        return self._gathering.groups

    def forget(self, group: str) -> list[Answer]:
        """Leave out what was gathered of `group`; returns the answers nobody may hear."""
        return self._gathering.remove(group)

    def present(self) -> tuple[str, ...]:
        """The groups with rows in the transaction under way."""
        return self._committing.groups

    def waiting(self) -> list[Answer]:
        """Every answer that waits for rows."""
        return self._committing.all_answers() + self._gathering.all_answers()

    def committed(self) -> Commit:
        """The transaction is durable; returns it, its answers may leave."""
        done, self._committing = self._committing, Commit()
        return done

    def failed(self) -> list[Answer]:
        """The transaction may not be durable: its groups are lost; returns the answers nobody may hear."""
        failed, self._committing = self._committing, Commit()
        unheard = failed.all_answers()
        for name in failed.groups:
            unheard += self._gathering.remove(name)
            self.lose(name)
        return unheard

    def lose(self, group: str) -> None:
        """Note that the memory of `group` is gone; what was decided before still becomes durable."""
        self._lost[group] = None

    def is_settled(self, group: str) -> bool:
        """Whether none of the group's rows is on the way to the storage."""
        return group not in self._gathering and group not in self._committing

    def to_reload(self) -> tuple[str, ...]:
        """The lost groups of which storage holds all there is."""
        return tuple(name for name in self._lost if self.is_settled(name))

    def reloaded(self, group: str) -> None:
        """The group is about to be taken up again."""
        self._lost.pop(group, None)
