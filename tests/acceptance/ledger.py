"""How often each query was started, beside how often it had to be, and why."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.acceptance.processes import Daemon


class Ledger:
    """Reasons for starts, a task; what the workers' logs say is held against them."""

    def __init__(self) -> None:
        self._reasons: defaultdict[str, list[str]] = defaultdict(list)

    def expect(self, tasks: Iterable[str], reason: str) -> None:
        """Each of `tasks` had to be started once for this reason."""
        for task in tasks:
            self._reasons[task].append(reason)

    def wanted(self) -> dict[str, int]:
        """Starts that had to be."""
        return {task: len(reasons) for task, reasons in self._reasons.items()}

    def counted(self, workers: Iterable[Daemon]) -> dict[str, int]:
        """Starts that were, by the workers' own logs."""
        return starts(workers, self._reasons)

    def table(self, workers: Iterable[Daemon]) -> str:
        """Both, for people."""
        counted = self.counted(workers)
        lines = [f"{'task':<6} {'had to':>6} {'did':>4}  because"]
        lines += [
            f"{task:<6} {len(reasons):>6} {counted[task]:>4}  {', '.join(reasons)}"
            for task, reasons in self._reasons.items()
        ]
        return "\n".join(lines)


def starts(workers: Iterable[Daemon], tasks: Iterable[str]) -> dict[str, int]:
    """How often each task was started, by the workers' logs; a long start is told again, with its cause."""
    lines = [line for worker in workers for line in worker.log().splitlines()]
    begun = [line for line in lines if "state=STARTING" in line and "cause=" not in line]
    return {task: sum(f"task={task} " in f"{line} " for line in begun) for task in tasks}
