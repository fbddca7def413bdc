"""How each strike is done, and how it is made good again."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.chaos.broker_strikes import BrokerStrikes
from tests.acceptance.chaos.hold import Hold
from tests.acceptance.chaos.plan import IN_PYTHON, ON_THE_BROKER, Moment, Strike
from tests.acceptance.chaos.proxy import Line
from tests.acceptance.chaos.sql_sinks import SqlSinks
from tests.acceptance.chaos.stage import WORKERS, jvm_of, processes_of
from tests.acceptance.waiting import eventually
from worker.host import EXIT_CODES
from worker.membership.events import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.plan import Round
    from tests.acceptance.chaos.stage import Stage

HELD_S = 1.0
"""How long a batch is open, while the sinks are locked, until it is taken for one that waits for the lock."""
FEED_EVERY_S = 10.0
"""After how long there are new rows for a batch: the last may have been through before anybody looked."""
PATIENCE_S = 400.0


class Blow:
    """One round's strike against one worker, `victim`."""

    def __init__(self, stage: Stage, planned: Round, victim: str | None = None) -> None:
        """`victim` is the worker, if it is not drawn."""
        self._stage = stage
        self._planned = planned
        flow = _held_flow(stage, planned) if planned.moment in IN_PYTHON else None
        drawn = stage.owner_of(flow.name) if flow else WORKERS[int(planned.victim * len(WORKERS))]
        self.victim = victim or drawn
        self._hold = Hold(stage, flow, self.victim) if flow else None
        self._worker = stage.herd.workers[self.victim]
        self._tasks = stage.tasks_of(self.victim)

    @property
    def commit(self) -> str | None:
        """What became of the commit that was struck, if one was."""
        return None

    def strike(self) -> Callable[[], None]:
        """Do it; returns what makes it good again."""
        return self._strikes()[self._planned.strike]()

    def _strikes(self) -> dict[Strike, Callable[[], Callable[[], None]]]:
        return {
            Strike.KILL: self._kill,
            Strike.FREEZE: self._freeze,
            Strike.JVM: self._kill_jvm,
            Strike.CUT: lambda: self._cut(Line.REFUSED),
            Strike.SILENCE: lambda: self._cut(Line.SILENT),
            Strike.MANAGER: self._kill_manager,
            **dict.fromkeys(ON_THE_BROKER, self._strike_broker),
        }

    @contextmanager
    def moment(self) -> Iterator[None]:
        """The body runs at the planned moment; a lock that makes it is held until the body is done."""
        if self._hold:
            with self._hold.held():
                yield
            return
        with ExitStack() as stack:
            if self._planned.moment is Moment.AT_WRITE:
                assert isinstance(self._stage.sinks, SqlSinks)
                stack.enter_context(self._stage.sinks.locked())
            self._stage.feed.add()
            if self._planned.moment is not Moment.ANY:
                self._await_batch(HELD_S if self._planned.moment is Moment.AT_WRITE else 0.0)
            self._let_time_pass()
            yield

    def _let_time_pass(self) -> None:
        """The planned while; nothing is waited for, it is the moment that is drawn."""
        end = time.monotonic() + self._planned.wait_s
        self._stage.wait(lambda: time.monotonic() >= end, "the moment has come")

    def _await_batch(self, for_s: float) -> None:
        """Until one of the worker's tasks has been inside a batch for so long; looked at without a pause."""
        began = fed = time.monotonic()
        since: float | None = None
        while since is None or time.monotonic() - since < for_s:
            now = time.monotonic()
            assert now < began + PATIENCE_S, f"no batch of {self._tasks} has begun"
            if not self._stage.is_in_batch(self._tasks):
                since = None
                if now > fed + FEED_EVERY_S:
                    self._stage.feed.add()
                    fed = now
            elif since is None:
                since = now

    def _kill(self) -> Callable[[], None]:
        self._worker.kill()
        return self._start_again

    def _freeze(self) -> Callable[[], None]:
        go_on = self._stand_still()

        def thaw() -> None:
            self._await_takeover()
            if self._hold:
                self._hold.await_heir()
            go_on()
            if self._hold:
                self._hold.await_end()

        return thaw

    def _stand_still(self) -> Callable[[], None]:
        """Freeze the worker, its JVM too if that is planned; returns what thaws it."""
        frozen = processes_of(self._worker, with_jvm=self._planned.whole)
        _signal(frozen, signal.SIGSTOP)
        self._stage.wait(lambda: all(map(_stands_still, frozen)), f"{self.victim} stands still")
        return lambda: _signal(reversed(frozen), signal.SIGCONT)

    def _kill_jvm(self) -> Callable[[], None]:
        os.kill(jvm_of(self._worker), signal.SIGKILL)

        def after_its_end() -> None:
            assert self._worker.process.wait(PATIENCE_S) == EXIT_CODES[Reason.ENGINE_DIED]
            self._start_again()

        return after_its_end

    def _cut(self, how: Line) -> Callable[[], None]:
        proxy, leases = self._stage.proxies[self.victim], self._stage.ends_of_leases(self.victim)
        proxy.cut(how)

        def mend() -> None:
            """Not before the worker has given up by itself; until then it may well try to write."""
            self._await_takeover()
            self._stage.feed.add()
            self._stage.wait(lambda: self._stage.ends_of_leases(self.victim) > leases, "its lease is over")
            proxy.mend()

        return mend

    def _kill_manager(self) -> Callable[[], None]:
        self._stage.herd.manager.kill()
        self._stage.herd.manager.start()
        return lambda: None

    def _strike_broker(self) -> Callable[[], None]:
        """With the worker, if that is planned: others then go on while the broker is as it is."""
        start_again = self._kill() if self._planned.whole else None
        mend = BrokerStrikes(self._stage).strike(self._planned.strike)

        def make_good() -> None:
            mend()
            if start_again is not None:
                start_again()

        return make_good

    def _start_again(self) -> None:
        self._worker.stop()
        self._worker.start()

    def _await_takeover(self) -> None:
        """Until others own all that the worker had."""

        def taken() -> bool:
            lost = self._stage.tasks_of(self.victim)
            owners = [task.owner for task in self._stage.view.tasks().values()]
            return not lost and None not in owners

        eventually(taken, "others have taken over", alive=[self._stage.herd.manager], within_s=PATIENCE_S)


def _held_flow(stage: Stage, planned: Round) -> Flow:
    """One that appends: what is written twice by key is there once."""
    wanted = {planned.database or flow.database for flow in stage.flows}
    flows = [flow for flow in stage.flows if flow.database in wanted and not flow.counts]
    return flows[int(planned.victim * len(flows))]


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    """To all that are still there: Spark's helpers come and go."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _stands_still(pid: int) -> bool:
    """Whether no thread of it runs any more, or it is gone.

    One of them takes the signal and stops the others; until it has had its turn at a processor, they go on.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        threads = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(path.read_text().rpartition(") ")[2][0] in "TtZX" for path in threads)
    return True
