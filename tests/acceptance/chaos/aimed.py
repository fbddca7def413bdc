"""Strikes at one task's commit, which is held when its files are written, or when it is half done."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.acceptance.chaos.lake import Lake, Work
from tests.acceptance.chaos.plan import Strike
from tests.acceptance.chaos.proxy import Line
from tests.acceptance.chaos.stage import WORKERS
from tests.acceptance.chaos.strikes import PATIENCE_S, Blow
from tests.acceptance.waiting import eventually
from worker.host import EXIT_CODES
from worker.membership.events import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.plan import Round
    from tests.acceptance.chaos.stage import Stage

FURTHER = 2
"""How many batches another owner has committed besides the one that is held, when that goes on."""
AT_LARGE_S = 8.0
"""How long a JVM whose worker is frozen goes on by itself, unless it has done harm before."""
_DEAD = {Strike.KILL, Strike.JVM}
_OUTLASTING = {Strike.FREEZE, Strike.TWO_OWNERS, Strike.RESET}
"""What holds the commit for longer than the moment."""


class AimedBlow(Blow):
    """A strike against the worker that has the task."""

    def __init__(self, stage: Stage, planned: Round) -> None:
        assert isinstance(stage.sinks, Lake)
        self._lake = stage.sinks
        self._flow = _aimed_at(stage, planned)
        super().__init__(stage, planned, stage.owner_of(self._flow.name))
        self._batch = -1

    @property
    def commit(self) -> str | None:
        """What became of the one that was held."""
        return self._commit.outcome

    def _strikes(self) -> dict[Strike, Callable[[], Callable[[], None]]]:
        return {**super()._strikes(), Strike.TWO_OWNERS: self._two_owners, Strike.RESET: self._reset}

    @contextmanager
    def moment(self) -> Iterator[None]:
        """The body runs while the commit is held; it goes on then, unless the strike needs it for longer."""
        self._commit = self._lake.hold(self.victim, self._flow, self._planned.moment, Work.BATCH)
        outlasts = False
        try:
            self._stage.feed.add(self._flow)
            self._stage.wait(lambda: self._commit.reached, f"a commit of {self._flow.name} is held")
            self._batch = self._stage.last_planned(self._flow.name)
            yield
            outlasts = self._planned.strike in _OUTLASTING
        finally:
            if not outlasts:
                self._commit.release(lost=self._planned.strike in _DEAD)

    def _freeze(self) -> Callable[[], None]:
        go_on = self._stand_still()

        def thaw() -> None:
            self._await_takeover()
            self._await_batch_of_heir(FURTHER)
            self._thaw(go_on)

        return thaw

    def _reset(self) -> Callable[[], None]:
        go_on = self._stand_still()

        def thaw() -> None:
            self._await_takeover()
            self._await_batch_of_heir(0)
            self._begin_anew()
            self._stage.wait(self._has_all, f"{self._flow.name} has read all again")
            self._thaw(go_on)

        return thaw

    def _two_owners(self) -> Callable[[], None]:
        leases = self._stage.ends_of_leases(self.victim)
        work = Work.CLAIM if self._planned.whole else Work.BATCH
        others = [worker for worker in WORKERS if worker != self.victim]
        held = [self._lake.hold(each, self._flow, self._planned.moment, work) for each in others]
        self._stage.proxies[self.victim].cut(Line.REFUSED)

        def both() -> None:
            self._stage.wait(lambda: any(each.reached for each in held), "the next owner's commit is held")
            for each in (self._commit, *held):
                each.release()
            self._stage.wait(lambda: self.commit is not None, f"the commit of {self._flow.name} is over")
            self._await_batch_of_heir(FURTHER)
            self._stage.wait(lambda: self._stage.ends_of_leases(self.victim) > leases, "its lease is over")
            self._stage.proxies[self.victim].mend()

        return both

    def _begin_anew(self) -> None:
        """As docs/tasks.md has it, with the rows deleted: what is read again is to be there once."""
        view, task = self._stage.view, self._flow.name
        view.stop(task)
        self._stage.wait(lambda: view.is_stopped(task), f"{task} is stopped")
        self._stage.resets[task] = view.reset(task)
        self._stage.wait(lambda: view.tasks()[task].cause is None, f"{task} is settled")
        self._stage.feed.forget(self._flow)
        self._lake.empty(self._flow)
        view.resume(task)

    def _has_all(self) -> bool:
        return self._lake.has_all_of(self._flow)

    def _thaw(self, go_on: Callable[[], None]) -> None:
        """The commit goes on, and the worker; a JVM that was not frozen with it is first."""
        self._commit.release()
        if self._stage.fenced:
            go_on()
            self._stage.wait(lambda: self.commit is not None, f"the commit of {self._flow.name} is over")
            return
        if not self._planned.whole:
            self._leave_at_large()
        go_on()
        assert self._worker.process.wait(PATIENCE_S) == EXIT_CODES[Reason.ENGINE_DIED]
        self._start_again()

    def _leave_at_large(self) -> None:
        end = time.monotonic() + AT_LARGE_S
        self._stage.wait(
            lambda: time.monotonic() > end or self._lake.balance(self._flow).twice > 0,
            "it has had its time",
        )

    def _await_batch_of_heir(self, further: int) -> None:
        """Until the batch that is held, and so many more, are committed, as the checkpoint shows."""
        eventually(
            lambda: self._stage.has_committed(self._flow.name, self._batch + further),
            f"{self._flow.name} has committed batch {self._batch + further} elsewhere",
            alive=self._stage.herd.daemons,
            within_s=PATIENCE_S,
        )


def _aimed_at(stage: Stage, planned: Round) -> Flow:
    """Any flow, or one that appends, if a database is planned."""
    flows = [flow for flow in stage.flows if not (planned.database and flow.counts)]
    return flows[int(planned.victim * len(flows))]
