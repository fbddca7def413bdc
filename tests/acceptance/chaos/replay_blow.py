"""Strikes at a worker that plays rows of one task again, which somebody asks for once more then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.acceptance.chaos.hold import MoveHold
from tests.acceptance.chaos.lake import Lake, Work
from tests.acceptance.chaos.plan import OF_REPLAYS, Strike
from tests.acceptance.chaos.strikes import Blow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.chaos.lake import CommitHold
    from tests.acceptance.chaos.mending import Mending
    from tests.acceptance.chaos.plan import Round
    from tests.acceptance.chaos.stage import Stage


class ReplayBlow(Blow):
    """A strike against the worker that has the task, whose rows are mended before."""

    def __init__(self, stage: Stage, planned: Round, mending: Mending) -> None:
        self._flow = stage.flows[int(planned.victim * len(stage.flows))]
        self._mending = mending
        mending.mend(self._flow)
        super().__init__(stage, planned, stage.owner_of(self._flow.name))

    @property
    def commit(self) -> str | None:
        """What became of the one that was held."""
        return self._held.outcome

    def _strikes(self) -> dict[Strike, Callable[[], Callable[[], None]]]:
        return {
            Strike.KILL: lambda: self._die(self._kill),
            Strike.JVM: lambda: self._die(self._kill_jvm),
            Strike.FREEZE: self._freeze,
        }

    @contextmanager
    def moment(self) -> Iterator[None]:
        """The body runs while rows that are played again are held on their way into the sink."""
        self._held = self._hold_replay()
        with ThreadPoolExecutor(1) as others:
            asked = others.submit(self._ask)
            self._stage.wait(lambda: self._held.reached, f"a replay of {self._flow.name} is held")
            yield
            asked.result()

    def _ask(self) -> None:
        """Until one is held; then it is over when the group has lost the worker."""
        self._stage.wait(lambda: self._mending.replay(self._flow) or self._held.reached, "it is answered")

    def _hold_replay(self) -> CommitHold:
        sinks, moment = self._stage.sinks, OF_REPLAYS[self._planned.moment]
        if isinstance(sinks, Lake):
            return sinks.hold(self.victim, self._flow, moment, Work.REPLAY)
        return MoveHold(self._stage, self._flow, self.victim)

    def _die(self, blow: Callable[[], Callable[[], None]]) -> Callable[[], None]:
        start_again = blow()
        self._held.release(lost=True)

        def make_good() -> None:
            start_again()
            self._mending.empty(self._flow)

        return make_good

    def _freeze(self) -> Callable[[], None]:
        """What is held goes on when another worker has played all of the rows."""
        go_on = self._stand_still()

        def thaw() -> None:
            self._await_takeover()
            self._mending.empty(self._flow)
            self._held.release()
            go_on()
            self._stage.wait(lambda: self.commit is not None, "what was held is over")

        return thaw
