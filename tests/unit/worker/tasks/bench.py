"""A task runner on a bench: a fake engine, a scripted manager, and a clock that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.messages.ownership import ClaimRequest, ClaimResponse, ReleaseRequest, ReportRequest
from tests.fakes.clock import FakeClock
from tests.fakes.manager import ScriptedManager, accept_all, grant_all, granted
from tests.fakes.query_engine import FakeEngine, FakeQuery
from tests.fakes.turns import settle, until
from worker.membership.events import Identity
from worker.session_lease import over_s
from worker.settings import WorkerSettings
from worker.tasks.runner import TaskRunner
from worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.background import BackgroundTasks
    from worker.membership.events import Refused
    from worker.query_engine import QueryEngine

ME = "worker-1"
SETTINGS = WorkerSettings(group="g", session_timeout_ms=9000, stop_timeout_ms=30_000)


class Bench:
    """The parts around one task runner; the manager agrees to everything unless a test says otherwise.

    The `watchdog` looks when the test has it look.

    With an `engine` the runner has that one, and not the fake.
    """

    def __init__(
        self,
        background: BackgroundTasks,
        settings: WorkerSettings = SETTINGS,
        engine: QueryEngine | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.manager = ScriptedManager()
        self.trouble: list[Refused] = []
        self.fenced: list[None] = []
        self.revision = 0
        self.is_alone = False
        self.spawn = background.spawn
        self.watchdog = Watchdog(self.clock.now, over_s(settings.session_timeout_ms), lambda _: None)
        self.manager.rule(ClaimRequest, grant_all())
        self.manager.rule(ReleaseRequest, accept_all)
        self.manager.rule(ReportRequest, accept_all)
        self.runner = TaskRunner(
            settings,
            manager=self.manager,
            engine=engine or self.engine,
            clock=self.clock,
            chance=lambda: 0.5,
            spawn=background.spawn,
            trouble=self.trouble.append,
            fenced=lambda: self.fenced.append(None),
            is_alone=lambda: self.is_alone,
            watching=self.watchdog.watching,
        )

    def assign(self, *tasks: str, generation: int = 1, member: str = ME) -> None:
        """The membership adopts this assignment."""
        self.runner.adopt(Identity(member, generation), frozenset(tasks))

    def refresh(self) -> None:
        """A heartbeat tells that definitions or targets have changed."""
        self.revision += 1
        self.runner.refresh(self.revision)

    async def run(self, *tasks: str) -> list[FakeQuery]:
        """Assign `tasks` and wait until they all run; returns their queries."""
        self.assign(*tasks)
        await until(lambda: self.engine.running == set(tasks), f"{tasks} run")
        await settle()
        return [self.engine.query(task) for task in tasks]

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        await settle()

    def grants(self, answer: Callable[[ClaimRequest], ClaimResponse | None]) -> None:
        """Answer claims by `answer` from now on."""
        self.manager.rule(ClaimRequest, answer)

    @property
    def claimed(self) -> list[tuple[str, ...]]:
        """The tasks of each claim so far."""
        return [request.tasks for request in self.manager.asked(ClaimRequest)]

    @property
    def released(self) -> dict[str, int]:
        """Everything released so far, with its token."""
        return {
            task: token
            for request in self.manager.asked(ReleaseRequest)
            for task, token in request.tasks.items()
        }


def grant(bench: Bench, **what: Any) -> None:
    """Every claim of t1 is granted with these particulars from now on, as of `revision` if that is one."""
    revision = what.pop("revision", None)
    bench.grants(
        lambda request: ClaimResponse(
            granted=tuple(granted(task, **what) for task in request.tasks), tasks_revision=revision
        )
    )


async def change(bench: Bench, **what: Any) -> None:
    """A heartbeat says that something has changed, and the claim says what."""
    grant(bench, **what)
    bench.refresh()
    await bench.settle()
