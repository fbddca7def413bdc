"""What is ordinary: everything that people do to a herd, and a query that fails now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.group_view import GROUP
from tests.quiet_hour.stage import MANAGERS, WORKERS, stone

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.quiet_hour.stage import Stage

NEWCOMER: Final = "dora"


class Ordinary:
    """Each act leaves the herd as it was: everybody is there, and all tasks run."""

    def __init__(self, stage: Stage, chance: Random) -> None:
        self._stage = stage
        self._chance = chance
        self._trigger_s = 5
        self.acts: tuple[Callable[[], None], ...] = (
            self.upgrade_workers,
            self.restart_tasks,
            self.upgrade_managers,
            self.pause_and_resume,
            self.stumble,
            self.newcomer,
            self.stop_and_resume,
            self.drain,
            self.change_definitions,
            self.come_and_go,
        )

    def upgrade_workers(self) -> None:
        """One after the other ends in order, and comes back."""
        for name in WORKERS:
            self._stage.end_worker(name)
            self._stage.start_worker(name)
            self._settled(f"{name} is back")

    def upgrade_managers(self) -> None:
        """One after the other ends in order, and comes back."""
        for name in MANAGERS:
            manager = self._stage.managers[name]
            code = manager.terminate()
            assert code == 0, f"manager {name} ended with {code}"
            manager.start()
            self._settled(f"{name} is back")

    def restart_tasks(self) -> None:
        """Three of them, where they are."""
        self._command("restart", *self._some(3))

    def pause_and_resume(self) -> None:
        """Three of them."""
        some = self._some(3)
        self._command("pause", *some, "--wait")
        self._stage.await_settled("the others run", but=len(some))
        self._command("resume", *some)

    def stop_and_resume(self) -> None:
        """Three of them."""
        some = self._some(3)
        self._command("stop", *some, "--wait")
        self._command("resume", *some)

    def stumble(self) -> None:
        """A query fails once, and its worker starts it again."""
        mark = stone(self._stage.folder)
        mark.touch()
        self._stage.wait(lambda: not mark.exists(), "a batch has failed")

    def newcomer(self) -> None:
        """A fourth worker comes, has its share, and goes."""
        self._stage.start_worker(NEWCOMER)
        self._settled("the fourth has its share")
        self._stage.end_worker(NEWCOMER)

    def drain(self) -> None:
        """All tasks of a worker go elsewhere, and come back."""
        member = self._stage.view.workers()[self._chance.choice(WORKERS)]
        for more in (("--wait",), ("--undo",)):
            self._stage.command("workers", "drain", member, "--group", GROUP, *more)

    def change_definitions(self) -> None:
        """Every task runs at another pace from now on."""
        self._trigger_s = 11 - self._trigger_s
        for kind in self._stage.kinds:
            trigger = {"processing_time": f"{self._trigger_s} seconds"}
            self._stage.view.put(kind.name, {**kind.definition, "trigger": trigger})

    def come_and_go(self) -> None:
        """A task is created, runs, and is deleted."""
        self._stage.view.put("visitor", VISITOR)
        self._settled("the visitor runs")
        self._stage.view.delete("visitor")

    def _some(self, count: int) -> list[str]:
        return self._chance.sample([kind.name for kind in self._stage.kinds], count)

    def _command(self, verb: str, *words: str) -> None:
        self._stage.command("tasks", verb, *words, "--group", GROUP)

    def _settled(self, what: str) -> None:
        self._stage.await_settled(what)


VISITOR: Final[dict[str, Any]] = {
    "source": {"format": "rate", "options": {"rowsPerSecond": 5}},
    "sql": "SELECT value FROM source",
    "sink": {"format": "noop"},
    "trigger": {"processing_time": "2 seconds"},
}
