"""A worker's errands on a fake clock, a manager that has some, an engine that does what a test says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from definition.document import Definition, parse_definition
from protocol.errands import ErrandKind
from protocol.messages.base import Response
from protocol.messages.checks import FetchCheckResponse
from protocol.messages.quarantine import FetchQuarantineResponse, QuarantineRequest
from tests.fakes.clock import FakeClock
from tests.fakes.query_engine import FakeEngine
from tests.fakes.turns import settle
from worker.checks.job import CheckJob
from worker.errands.runner import ErrandRunner
from worker.membership.events import Identity
from worker.quarantined_rows.job import QuarantineJob
from worker.query_engine import QueryError, QuerySpec
from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from protocol.errors import Failure
    from protocol.messages.errands import ErrandReport, ErrandRequest
    from worker.background import BackgroundTasks

Answer = TypeVar("Answer", bound=msgspec.Struct)

DOCUMENT = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
ME = Identity("me", 3)
TASK, TOKEN = "t", 7


class Manager:
    """Has errands, unless it is in trouble."""

    def __init__(self) -> None:
        self.has: dict[ErrandKind, msgspec.Struct] = {}
        self.trouble: list[Failure] = []
        self.fetched: list[ErrandRequest] = []
        self.reported: list[ErrandReport] = []
        self.check(DOCUMENT)

    def check(self, document: dict[str, Any]) -> None:
        """What is to be checked."""
        definition = msgspec.Raw(msgspec.json.encode(document))
        self.has[ErrandKind.CHECK] = FetchCheckResponse(
            definition=definition, rows=10, begin="end", timeout_ms=5000
        )

    def quarantine(self, action: Any, token: int = TOKEN, **wanted: Any) -> None:
        """What is to be done with quarantined rows."""
        request = QuarantineRequest(**{"action": action, "timeout_ms": 5000} | wanted)
        self.has[ErrandKind.QUARANTINE] = FetchQuarantineResponse(task=TASK, token=token, request=request)

    async def fetch_errand(self, request: ErrandRequest, into: type[Answer]) -> Answer | Failure:
        """What there is of that kind."""
        self.fetched.append(request)
        if self.trouble:
            return self.trouble.pop(0)
        found = self.has[request.kind]
        assert isinstance(found, into)
        return found

    async def report_errand(self, request: ErrandReport) -> Response | Failure:
        """Remember it."""
        self.reported.append(request)
        return self.trouble.pop(0) if self.trouble else Response()


class Owner:
    """Owns a task, until a test takes it."""

    def __init__(self) -> None:
        self.definition: Definition | None = parse_definition(msgspec.json.encode(DOCUMENT))
        self.tokens = {TASK: TOKEN}
        self._changed = ChangeSignal()

    def lose(self) -> None:
        """It is somebody else's."""
        self.tokens = {}
        self._changed.notify()

    def spec_of(self, task: str, token: int) -> QuerySpec | None:
        """As `worker.tasks.holdings` has it."""
        if self.tokens.get(task) != token:
            return None
        if self.definition is None:
            raise QueryError("the definition cannot be used: of a later version")
        return QuerySpec("g", task, token, self.definition)

    async def until_lost(self, task: str, token: int) -> None:
        """As `worker.tasks.holdings` has it."""
        await self._changed.until(lambda: self.tokens.get(task) != token)


class Bench:
    """One worker."""

    def __init__(self, background: BackgroundTasks) -> None:
        self.manager = Manager()
        self.engine = FakeEngine()
        self.owner = Owner()
        self.clock = FakeClock()
        self.runner = ErrandRunner(
            self.manager,
            {
                ErrandKind.CHECK: CheckJob(self.engine, "g"),
                ErrandKind.QUARANTINE: QuarantineJob(self.engine, self.owner),
            },
            instance_id=None,
            clock=self.clock,
            chance=lambda: 0.5,
            spawn=background.spawn,
        )

    async def check(self, errand: str | None) -> None:
        """A heartbeat has told of a check."""
        await self.take(ErrandKind.CHECK, errand)

    async def take(self, kind: ErrandKind, errand: str | None) -> None:
        """A heartbeat has told of an errand."""
        self.runner.take(ME, kind, errand)
        await settle()

    @property
    def outcome(self) -> Any:
        """Of the one errand that was reported."""
        [told] = self.manager.reported
        return told.result or told.trouble
