"""Workers: the real membership rules around mere bookkeeping of tasks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from definition.document import is_fenced
from protocol.errors import ErrorCode, Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import EngineEnd, Protocol
from protocol.messages.tasks import TaskHome
from protocol.states import Target
from protocol.worker_lease import REASSIGN_PERCENT, part_of
from tests.simulation.claiming import Claiming
from tests.simulation.leader import SimLeader
from tests.simulation.mishaps import HANGS, HANGS_MS, POISON, POISON_MS, STUCK
from tests.simulation.participant import Participant
from tests.simulation.releasing import Releasing
from tests.simulation.reporting import Reporting
from tests.simulation.runs import RUN_MS, Run, Runs, comes_to_an_end
from tests.simulation.sink import Query
from worker.membership import events
from worker.membership.events import Identity
from worker.membership.state_machine import Membership
from worker.membership.states import MemberState
from worker.tasks.first_starts import FirstStarts

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from protocol.connectors import Needs
    from protocol.messages.ownership import ClaimResponse, GrantedTask
    from protocol.worker_metadata import WorkerMetadata
    from tests.simulation.network import Route
    from tests.simulation.sink import Sink
    from tests.simulation.world import World
    from worker.membership.requests import Terms

BATCH_MS = 200
PATIENCE_MS = 1500
"""How long a task may take to start before others move as well."""
REPORT_EVERY = 4
MEASURE_EVERY = 12


class SimWorker(Participant):
    """A worker; `owned` is what it runs, each task under its token, and `stops` counts ended queries.

    `hanging` is what it is about to settle, `resting` what it is done with; `faults` says of what it is not.
    `left` are queries that it has left running for their next owners, under tokens that it has given back.
    `unfenced` has those of its tasks whose sink has no fence, and until when their tokens may be believed in.
    `begun` are those of its tasks that have written a batch, under which token. `told` is what it says of
    itself, `at_once` how many running tasks it has move to a member at the same time when it leads. One that
    does not say that it settles is of a former version: it calls a task STOPPED whatever its sink has heard.
    """

    def __init__(
        self,
        world: World,
        route: Route,
        name: str,
        sink: Sink,
        terms: Terms,
        *,
        told: WorkerMetadata,
        at_once: int = 0,
    ) -> None:
        super().__init__(world, route, name)
        self.sink = sink
        self.told = told
        self.owned: dict[str, int] = {}
        self.stuck: dict[str, int] = {}
        self.left: dict[str, int] = {}
        self.unfenced: dict[str, int] = {}
        self.begun: dict[str, int] = {}
        self.starts = FirstStarts(self._has_begun, lambda: world.now / 1000, PATIENCE_MS / 1000)
        self.leader = SimLeader(at_once)
        self.assigned: frozenset[str] = frozenset()
        self.claiming = Claiming(self)
        self.releasing = Releasing(self)
        self.resting: dict[str, int] = {}
        self.hanging: dict[str, int] = {}
        self.faults: dict[str, str] = {}
        self.runs = Runs()
        self._granted: dict[tuple[str, int], Query] = {}
        self.reporting = Reporting(self)
        self.identity = Identity()
        self.instance_id = terms.instance_id
        self.over_ms = part_of(terms.session_timeout_ms, REASSIGN_PERCENT)
        self.heard_at = world.now
        self.stops = 0
        self.batches = 0
        sink.writers.append(self)
        self.died_of_poison: Callable[[SimWorker], None] = lambda _: None
        self.membership = Membership(terms, self._offer, world.chance.random)
        self.post(events.Started())
        self._go_on()

    @property
    def membership_id(self) -> str:
        """Its member id, as its membership has it."""
        return self.membership.identity.member_id

    @property
    def settled_in(self) -> int | None:
        """The generation, once its membership is Stable."""
        membership = self.membership
        return membership.identity.generation if membership.state is MemberState.STABLE else None

    def post(self, event: Any) -> None:
        """Something happened to it."""
        if self.is_alive:
            for effect in self.membership.handle(event, self.world.now / 1000):
                self._carry_out(effect)

    def stop(self) -> None:
        """It is asked to leave in order."""
        self._when_awake(lambda: self.post(events.StopAsked(events.Quit(events.Reason.ASKED, "bye"))))

    def may_run(self, home: TaskHome) -> bool:
        """Whether it runs a task without a fence, or may go on with it any moment: all of its leases hold."""
        if not self.is_alive or self.world.now >= self.lapses_at:
            return False
        running = self.owned | self.stuck
        believed = [task for task, until in self.unfenced.items() if self.world.now < until]
        return any(self.query(task, running[task]).home == home for task in believed if task in running)

    def query(self, task: str, token: int) -> Query:
        """What it runs, or has run, of `task` under `token`."""
        group = self.route.group
        known = self._granted.get((task, token))
        return known or Query(group, task, token, TaskHome(group, task))

    @property
    def lapses_at(self) -> int:
        """When its lease on itself has run out, and whatever it ran is over: as late as it may be."""
        return self.heard_at + self.over_ms

    def thawed(self) -> None:
        """The batch it was frozen in is written before anybody looks at a clock; the fence refuses it.

        Where there is no fence this is the one thing that no rule prevents (docs/exactly-once.md); it is
        left out here.
        """
        self._write()
        self._look_at_lease()

    def can(self, needs: Needs) -> bool:
        """Whether it is not known that its Spark lacks what a task needs."""
        formats = self.told.formats
        return formats is None or not any(map(formats.lack, needs.sources))

    def _offer(self, revision: int) -> tuple[Protocol, ...]:
        told = {
            "owned": self.owned | self.stuck | self.hanging | self.resting | self.runs.tokens(),
            "tasks_revision": revision,
            "claiming": sorted(self.claiming.claims.tasks),
            "starting": sorted(self.starts.under_way()),
        }
        return (Protocol("sticky", encode_opaque(msgspec.structs.replace(self.told, **told))),)

    def _carry_out(self, effect: Any) -> None:
        match effect:
            case events.Send(request):
                self.ask(request, partial(self._answered, effect, self.world.now))
            case events.Wait(delay_s):
                self.later(int(delay_s * 1000) + 1, lambda: self.post(events.Waited(effect)))
            case events.Assign(joined):
                self.later(
                    self.world.some(0, 5),
                    lambda: self.post(events.Assigned(effect, self.leader.assign(joined))),
                )
            case events.Adopt(identity, tasks, more_after_s):
                self.identity, self.assigned = identity, tasks
                self.starts.assign(tasks)
                if more_after_s is not None:
                    self.later(int(more_after_s * 1000), partial(self._look_at_starts, identity))
                self.releasing.let_go(self._held() - tasks)
                self.claiming.claim(tasks)
            case events.Refresh():
                self.claiming.claim(self.assigned)
                self.reporting.report(dict(self.stuck))
            case events.Revoke() | events.Drain():
                self.assigned = frozenset()  # what is granted from now on is given back unrun
                self.starts.assign(frozenset())
                self.releasing.let_go(self._held())
                self.later(50, lambda: self.post(events.Revoked(effect, stopped=not self.stuck)))
            case events.Lose():
                self.stops += len(self.owned)
                self.owned, self.stuck, self.assigned = {}, {}, frozenset()
                self.unfenced, self.resting, self.hanging = {}, {}, {}
                self.claiming.claims.abandon()
                self.runs = Runs()
                self.starts.assign(frozenset())
            case events.Quit():
                self.is_alive = False

    def _answered(self, effect: events.Send, sent: int, answer: Any) -> None:
        if not isinstance(answer, Failure) or answer.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.accepted(sent)
        self.post(events.Answered(effect, answer))

    def accepted(self, sent: int) -> None:
        """Every accepted request renews the lease, counted from when it was sent."""
        self.heard_at = max(self.heard_at, sent)

    # What its queries do, and the lease that stops them.

    def _go_on(self) -> None:
        self._look_at_lease()
        self._write()
        self.batches += 1
        if self.batches % REPORT_EVERY == 0:
            self.reporting.report(self.owned | self.stuck | self.hanging)
        if self.batches % MEASURE_EVERY == 0:
            self.reporting.measure()
        self.later(BATCH_MS, self._go_on)

    def _look_at_lease(self) -> None:
        """No accepted request for a session timeout, counted from when it was sent: all is lost."""
        if self.owned and self.world.now >= self.lapses_at:
            self.post(events.LeaseExpired())
        for task in [task for task, until in self.unfenced.items() if self.world.now >= until]:
            self._lose_token(task)

    def _lose_token(self, task: str) -> None:
        """The manager has not confirmed it for a session timeout: somebody else may have the task."""
        self.drop(task, self.owned.get(task, self.stuck.get(task, 0)))
        self.unfenced.pop(task, None)

    def confirm(self, task: str, sent: int) -> None:
        """The manager has confirmed, in answer to a request sent then, that the task is this worker's."""
        if task in self.unfenced:
            self.unfenced[task] = max(self.unfenced[task], sent + self.over_ms)

    def _write(self) -> None:
        for running in (self.owned, self.stuck, self.left):
            for task, token in tuple(running.items()):
                self.begun[task] = token
                if running is self.owned and self.runs.has_failed(task):
                    continue
                if task in self.unfenced:
                    self.sink.write_unfenced(self.query(task, token), self)
                elif not self.sink.write(self.query(task, token), self.name):
                    self.drop(task, token)

    def _has_begun(self, task: str) -> bool:
        """Whether its start takes no more time."""
        is_over = task in self.resting | self.hanging | self.runs.over
        return is_over or self.begun.get(task, -1) == self.owned.get(task)

    def _look_at_starts(self, identity: Identity) -> None:
        if self.starts.under_way():
            self.later(BATCH_MS, partial(self._look_at_starts, identity))
        else:
            self.post(events.Settled(identity))

    def drop(self, task: str, token: int) -> None:
        """A query whose token is no longer the present one ends, stuck or not."""
        if self.owned.get(task) == token:
            del self.owned[task]
            self.stops += 1
            return
        for known in (self.stuck, self.left, self.hanging, self.resting):
            if known.get(task) == token:
                del known[task]
                return
        if self.runs.tokens().get(task) == token:
            del self.runs.over[task]

    # The bookkeeping of tasks.

    def take_in(self, answer: ClaimResponse, sent: int) -> None:
        """What was granted is this worker's; what is not assigned to it any more is given back unrun."""
        strange = {grant.task: grant.token for grant in answer.granted if grant.task not in self.assigned}
        self.releasing.let_go(strange.keys() & self._held())
        self.releasing.give_back(strange)
        for grant in answer.granted:
            self._know(grant)
            if grant.task in strange or grant.token < self.owned.get(grant.task, 0):
                continue
            run = self.runs.follow(grant, answer.tasks_revision or 0)
            if run is None:
                continue
            if grant.target == Target.STOPPED.value:
                self._stop_running(grant.task, grant.token)
                continue
            self.stuck.pop(grant.task, None)
            self.unfenced.pop(grant.task, None)
            self.sink.settle(self.query(grant.task, grant.token))
            self.resting.pop(grant.task, None)
            self.hanging.pop(grant.task, None)
            self.owned[grant.task] = grant.token
            if not is_fenced(grant.definition):
                self.unfenced[grant.task] = sent + self.over_ms
                self.sink.write_unfenced(self.query(grant.task, grant.token), self)
            if grant.task == POISON:
                self.later(self.world.some(*POISON_MS), partial(self._take_poison, grant.token))
            if comes_to_an_end(grant):
                self.later(self.world.some(*RUN_MS), partial(self._come_to_its_end, grant.task, run))

    def _know(self, grant: GrantedTask) -> None:
        """Those of a former version know nothing of homes."""
        home = (grant.home if self.told.homes else None) or TaskHome(self.route.group, grant.task)
        self._granted[grant.task, grant.token] = Query(self.route.group, grant.task, grant.token, home)

    def _held(self) -> AbstractSet[str]:
        """What it has to let go of when it is not to have it any more."""
        return (self.owned | self.hanging | self.runs.over).keys()

    def _come_to_its_end(self, task: str, run: Run) -> None:
        """A bounded query has done all there is, if it is still the one that runs."""
        if self.is_alive and self.owned.get(task) == run.token and self.runs.end(task, run):
            del self.owned[task]
            self.unfenced.pop(task, None)
            self.sink.complete(self.query(task, run.token), run)

    def fail(self, task: str) -> None:
        """Its query fails, and is not tried again before somebody wants something else of the task."""
        self._when_awake(lambda: self.runs.fail(task) if task in self.owned else None)

    def fenced(self) -> list[Query]:
        """Its queries that run, as far as a fence can refuse them."""
        running = [(task, token) for task, token in self.owned.items() if not self.runs.has_failed(task)]
        known = [*running, *self.left.items()]
        return [self.query(task, token) for task, token in known if task not in self.unfenced]

    def lose_query(self, query: Query) -> None:
        """Somebody has ended it."""
        if self.query(query.task, query.token) is query:
            self.drop(query.task, query.token)

    def _stop_running(self, task: str, token: int) -> None:
        """A task is not to run any more, or is only given to be settled; a query may refuse to stop."""
        if token in {self.stuck.get(task), self.hanging.get(task)}:
            return
        running = self.owned.pop(task, None)
        self.stops += running is not None
        if running == token and not self.runs.has_failed(task) and self.world.happens(STUCK):
            self.stuck[task] = token
            return
        self.stuck.pop(task, None)
        self.unfenced.pop(task, None)
        if self.told.settles and self.world.happens(HANGS):
            self.hanging[task] = token
            self.later(self.world.some(*HANGS_MS), partial(self._give_up, task, token))
            return
        if self.told.settles:
            self.sink.settle(self.query(task, token))
        self._come_to_rest(task, token)

    def _give_up(self, task: str, token: int) -> None:
        """The sink has not answered in time, if the task is still to be settled."""
        if self.is_alive and self.hanging.get(task) == token:
            del self.hanging[task]
            self._come_to_rest(task, token, "the sink does not answer")

    def _come_to_rest(self, task: str, token: int, fault: str | None = None) -> None:
        self.resting[task] = token
        self.faults.pop(task, None)
        if fault is not None:
            self.faults[task] = fault

    def _take_poison(self, token: int) -> None:
        """The query has been up for a moment, if it still is."""
        if self.owned.get(POISON) == token and self.is_alive:
            self.died_of_poison(self)

    def lose_engine(self, end: EngineEnd) -> None:
        """Its queries are gone; it leaves, or is gone itself before it can say a word."""
        if end is EngineEnd.KILLED:
            self.kill()
        else:
            self.post(
                events.StopAsked(
                    events.Quit(events.Reason.ENGINE_DIED, "the engine died", end), in_order=False
                )
            )
