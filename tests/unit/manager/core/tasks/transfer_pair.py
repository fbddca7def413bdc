"""Two groups of two coordinators, and what is carried between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core.commands import SetTarget
from manager.core.stored_rows import TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Ask, Bench

if TYPE_CHECKING:
    from collections.abc import Mapping

ID = "move-1"


class Pair:
    """Group `a`, whose worker owns the task `t`, and group `b`, which has a worker, too."""

    def __init__(self, *tasks: str, targets: Mapping[str, Target] | None = None) -> None:
        self.a, self.b = Bench("a"), Bench("b")
        self.tasks = tasks or ("t",)
        [self.giver] = self.a.herd(1, *self.tasks)
        [self.getter] = self.b.herd(1, "other")
        for task, target in (targets or {}).items():
            assert self.a.ask(SetTarget(task=task, target=target)).error == "NONE"

    def start(self, *tasks: str, to: Mapping[str, str] | None = None, **more: Any) -> Ask:
        """Begin to give them, under the names in `to`."""
        names = to or {task: task for task in tasks or self.tasks}
        request = StartTransfer(transfer=ID, to_group="b", tasks=names, **more)
        return self.a.ask(request)

    def stop_all(self) -> None:
        """The worker of the first group stops what it is to stop, and says so."""
        for task in self.tasks:
            owner, token, _ = self.a.owner(task)
            if owner is not None:
                self.a.report(owner, task, token, TaskState.STOPPED)

    def cancel(self, cause: str = "asked for") -> Ask:
        """Have the tasks stay."""
        return self.a.ask(CancelTransfer(transfer=ID, cause=cause))

    def tell(self, to: Bench, rows: tuple[TransferRow, ...] | None = None) -> Ask:
        """Carry what the other group has stored, or what it had stored once, to this one."""
        peer = self.b if to is self.a else self.a
        return to.ask(AdvanceTransfer(transfer=ID, peers=stored(peer) if rows is None else rows))

    def carry(self, rounds: int = 4) -> None:
        """Carry word to and fro until nothing is left to be said."""
        for _ in range(rounds):
            self.tell(self.b)
            self.tell(self.a)

    def steps(self) -> tuple[list[str], list[str]]:
        """How far the tasks are in either group."""
        first, second = ([row.step.value for row in stored(bench)] for bench in (self.a, self.b))
        return first, second


def stored(bench: Bench) -> tuple[TransferRow, ...]:
    """What one group has stored of transfers."""
    return tuple(row for row in bench.store.values() if isinstance(row, TransferRow))
