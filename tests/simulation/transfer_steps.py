"""The steps of transfers as both groups store them, and what a task brings along (protocol §5, Transfers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.stored_rows import TransferRow
from protocol.states import Target, TaskState, TransferStep
from tests.simulation.violations import hold

if TYPE_CHECKING:
    from manager.core.stored_rows import OwnershipRow, Parcel, TaskRow
    from manager.core.turn import Turn

Key = tuple[str, ...]
"""A group, a transfer, and the name of a task there."""

NEXT = {
    None: {TransferStep.STOPPING, TransferStep.ARRIVED, TransferStep.REFUSED},
    TransferStep.STOPPING: {TransferStep.STOPPED, TransferStep.CANCELLED},
    TransferStep.STOPPED: {TransferStep.GIVEN, TransferStep.CANCELLED},
    TransferStep.ARRIVED: {TransferStep.STARTED},
    TransferStep.GIVEN: {TransferStep.DONE},
}
"""What may come after each step in the same group."""
DECIDED = {TransferStep.GIVEN, TransferStep.DONE, TransferStep.CANCELLED}
"""Steps that all tasks of a transfer come to together."""
GOES_ON = {TransferStep.STARTED, TransferStep.CANCELLED}
"""With these what was wanted of a task before is wanted again, there or here."""


class TransferSteps:
    """Follows what is stored, a row at a time; `done` and `cancelled` count tasks."""

    def __init__(self) -> None:
        self.done = self.cancelled = 0
        self._rows: dict[Key, TransferRow] = {}
        self._packed: dict[Key, Parcel] = {}
        self._touched: dict[tuple[str, str], None] = {}

    def decided(self, turn: Turn) -> None:
        """What was wanted of a task is wanted of it in the end, wherever it is."""
        registry = turn.group.tasks
        for row in turn.changes:
            if isinstance(row, TransferRow) and row.step in GOES_ON:
                present = registry.definitions[row.task].target
                hold("what was wanted is wanted again", present is row.target, (row, present))

    def stored(self, row: TransferRow, task: TaskRow | None, owned: OwnershipRow | None) -> None:
        """`task` and `owned` are what is stored of the name in the same group at this moment."""
        before = self._rows.get(row.key)
        peer = self._rows.get((row.peer_group, row.transfer, row.peer_task))
        is_next = row.step in NEXT.get(_step(before), ())
        hold("a transfer goes step by step", is_next, (before, row))
        hold("what was wanted is remembered", before is None or before.target is row.target, (before, row))
        self._check(row, _step(peer), task, owned)
        self._rows[row.key] = row
        self._touched[row.group, row.transfer] = None

    def _check(
        self, row: TransferRow, there: TransferStep | None, task: TaskRow | None, owned: OwnershipRow | None
    ) -> None:
        match row.step:
            case TransferStep.STOPPING:
                hold("what was wanted is remembered", task and task.target is row.target, (row, task))
            case TransferStep.STOPPED:
                self._check_packed(row, task, owned)
            case TransferStep.ARRIVED:
                self._check_arrived(row, task, owned)
            case TransferStep.GIVEN:
                hold("nothing is given before it has arrived", there is TransferStep.ARRIVED, (row, there))
            case TransferStep.STARTED:
                hold("nothing runs before it is given", there is TransferStep.GIVEN, (row, there))
            case TransferStep.DONE:
                hold("nothing is forgotten before it runs", there is TransferStep.STARTED, (row, there))
                self.done += 1
            case TransferStep.CANCELLED:
                self.cancelled += 1
            case _:
                pass

    def _check_packed(self, row: TransferRow, task: TaskRow | None, owned: OwnershipRow | None) -> None:
        nobody = owned is None or (owned.owner is None and owned.lease is None)
        hold("a task is packed when nobody runs it", nobody, (row, owned))
        hold("what is packed is the task", row.parcel is not None and row.parcel.task == task, (row, task))
        assert row.parcel is not None
        self._packed[row.key] = row.parcel

    def _check_arrived(self, row: TransferRow, task: TaskRow | None, owned: OwnershipRow | None) -> None:
        """What arrives is what was packed, STOPPED, or COMPLETED as before, under a higher token."""
        packed = self._packed[row.peer_group, row.transfer, row.peer_task]
        assert task is not None
        assert owned is not None
        hold("what arrives is what was packed", _told(task) == _told(packed.task), (packed, task))
        hold("what arrives is what was packed", _known(owned) == _known(packed.ownership), (packed, owned))
        hold("what arrives does not run", task.target is Target.STOPPED, task)
        hold("a token is above all before", owned.token > packed.ownership.token, (packed, owned))

    def forgotten(self, key: Key) -> None:
        """The row of that key is gone."""
        del self._rows[key]

    def check(self) -> None:
        """After each transaction: all tasks of a transfer go, or none."""
        for group, transfer in self._touched:
            rows = [row for key, row in self._rows.items() if key[:2] == (group, transfer) and row.leaves]
            steps = {row.step for row in rows}
            hold("all tasks of a transfer go, or none", len(steps) < 2 or not steps & DECIDED, rows)
        self._touched = {}

    def left(self) -> list[TransferRow]:
        """What is not over."""
        return [row for row in self._rows.values() if not row.is_over]


def _step(row: TransferRow | None) -> TransferStep | None:
    return None if row is None else row.step


def _told(task: TaskRow) -> TaskRow:
    return msgspec.structs.replace(task, group="", task="", revision=0)


def _known(owned: OwnershipRow) -> tuple[object, ...]:
    return owned.state is TaskState.COMPLETED, owned.reset, owned.reached, owned.batch_id, owned.blame
