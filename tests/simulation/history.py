"""One history: members in a storm, then calm, then everything has to be in order and stay so."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import msgspec

from manager.core import transfer_registry
from manager.core.commands import CreateTask, NewDefinition, StartRebalance
from manager.core.tasks import homes, offers, settling
from manager.core.tasks.probation import is_suspect
from manager.settings import GroupSettings
from protocol.connectors import Formats
from protocol.states import GroupState, Target
from protocol.worker_metadata import WorkerMetadata
from tests.simulation.actions import ACTIONS, KAFKA
from tests.simulation.cluster import Cluster
from tests.simulation.invariants import Watch
from tests.simulation.mishaps import POISON
from tests.simulation.network import Network, Route
from tests.simulation.plan import CALM, Plan
from tests.simulation.query_server import QueryServer
from tests.simulation.readers import Habits, SimReader
from tests.simulation.runs import is_bounded
from tests.simulation.sink import Sink
from tests.simulation.transfer_actions import TRANSFER_ACTIONS
from tests.simulation.violations import InvariantError, hold
from tests.simulation.workers import SimWorker
from tests.simulation.world import World
from worker.membership.requests import Terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.stored_rows import TaskRow
    from protocol.messages.base import Request
    from tests.simulation.participant import Participant
    from tests.simulation.plan import Action

SILENT = 0.1
"""How often a worker does not say which formats its Spark has."""
CALM_MS = 30_000
"""Bounded time: everything there is to wait for, one after another, is over by then (invariant 5)."""
POISONED_MS = 150_000
"""As long as it takes until all workers have died that have to, each of which is noticed by its silence."""
MOST_POISONED = 40
"""Workers that a poison task may cost after the storm (`core.tasks.quarantine`), some with others.

Six in a row as a rule. A worker may also die of it after its manager has taken the task away again, because
the answer that granted it was late: nobody can know of what, and that speaks for all suspects. 24 have been
seen, in one history of ten thousand."""
LOOK_EVERY_MS = 1000
MAX_WAIT_MS = 5500
"""Longer than any request may be parked."""
SMALL_PAGE = 2
"""Tasks that a leader is told of at a time: groups here have few."""
FEW_KEPT = 2
"""Transfers that are over and that a group remembers: there are few in a history."""
QUIET_TASKS = 6
"""So many more there are before somebody joins in the end."""
QUIET_MS = 5000
"""Longer than any session: whoever would be lost without a reason is lost by then."""


@dataclass
class Figures:
    """What a history was made of."""

    histories: int = 0
    steps: int = 0
    requests: int = 0
    crashes: int = 0
    takeovers: int = 0
    rebalances: int = 0
    fenced_writes: int = 0
    unfenced_writes: int = 0
    resets: int = 0
    poisoned: int = 0
    quarantined: int = 0
    paced: int = 0
    completed: int = 0
    transferred: int = 0
    kept: int = 0

    def add(self, other: Figures) -> None:
        """Add up."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class History:
    """Everything that takes part in what `plan` says."""

    def __init__(self, plan: Plan, *, tracing: bool = False) -> None:
        self.plan = plan
        self.world = World(plan.seed, tracing=tracing)
        self.watch = Watch()
        settings = GroupSettings(
            initial_rebalance_delay_ms=plan.initial_delay_ms,
            group_max_size=plan.group_max_size,
            lost_task_delay_ms=plan.lost_task_delay_ms,
            min_session_timeout_ms=500,
        )
        self.cluster = Cluster(self.world, plan, settings, self.watch)
        self.network = Network(self.world, self.cluster, plan.weather)
        self.sink = Sink(self.watch)
        self.server = QueryServer(self.world, self.sink, self.watch.whereabouts)
        self.transfers: list[str] = []
        self.members_hired: list[Participant] = []
        self.poisoned = self.poisoned_in_calm = 0
        self.is_calm = False

    def run(self) -> Figures:
        """Let it happen.

        Raises:
            InvariantError: an invariant does not hold.
        """
        with patch.object(offers, "PAGE", SMALL_PAGE), patch.object(transfer_registry, "KEPT", FEW_KEPT):
            return self._run()

    def _run(self) -> Figures:
        for action in self.plan.actions:
            self.world.after(action.at_ms, partial(self._do, action))
        if self.plan.poison is not None:
            self.world.after(self.plan.storm_ms // 2, self._poison)
        self.world.run(self.plan.storm_ms)
        self._calm_down()
        self._wait_for_order()
        self._await_aftermath()
        self._rebalance_quietly()
        self._move_quietly()
        return self._figures()

    def _do(self, action: Action) -> None:
        self.world.note("action", action.what)
        (ACTIONS | TRANSFER_ACTIONS)[action.what](self, Random(action.seed))

    # What actions are done with.

    def alive(self) -> list[Participant]:
        """The members that have not ended."""
        return [member for member in self.members_hired if member.is_alive]

    def hire(self, chance: Random) -> None:
        """One more member of some group."""
        self._hire_into(chance.choice(self.plan.groups), chance)

    def _hire_into(self, group: str, chance: Random, *, is_new: bool = False) -> None:
        """One more member, of a kind that fits its group; one that `is_new` is nobody's next process."""
        route = Route(self.network, group, keeps=chance.random() < 0.8)
        number = len(self.members_hired)
        instance = f"s{number % 3}" if chance.random() < 0.3 and not is_new else None
        name = f"m{number}"
        member: Participant
        if group in self.plan.groups[: self.plan.herds]:
            wait_ms = 0 if chance.random() < 0.2 else 600
            terms = Terms(name, self.plan.session_ms, self.plan.rebalance_ms, wait_ms, instance)
            settles = Random(f"former {self.plan.seed} {number}").random() >= self.plan.former
            told = WorkerMetadata(
                settles=settles,
                homes=settles,
                offer_pages=settles,
                formats=self._formats(number),
                max_tasks=self._max_tasks(number),
                paces=settles,
            )
            member = SimWorker(
                self.world, route, name, self.sink, terms, told=told, at_once=self.plan.at_once
            )
            member.died_of_poison = self._on_poisoned
        else:
            protocols = chance.choice([("range",), ("sticky", "range"), ("range", "sticky")])
            habits = Habits(
                protocols,
                instance,
                self.plan.session_ms,
                self.plan.rebalance_ms,
                is_deaf=instance is None and chance.random() < 0.1,
            )
            member = SimReader(self.world, route, name, habits)
        self.members_hired.append(member)

    def _max_tasks(self, number: int) -> int | None:
        """How many tasks a worker is given at most; None for any number."""
        chance = Random(f"limited {self.plan.seed} {number}")
        return chance.randint(1, 3) if chance.random() < self.plan.limited else None

    def _formats(self, number: int) -> Formats | None:
        """What a worker's Spark has beside what all have; None of a worker that does not say."""
        chance = Random(f"lacking {self.plan.seed} {number}")
        if self.plan.lacking is None or chance.random() < SILENT:
            return None
        return Formats(() if chance.random() < self.plan.lacking else KAFKA.sources)

    def _poison(self) -> None:
        document = msgspec.Raw(b"{}")
        definition = NewDefinition(document, 1.0, None, {})
        self.ask(self.plan.groups[0], CreateTask(task=POISON, definition=definition, target=Target.RUNNING))

    def _on_poisoned(self, worker: SimWorker) -> None:
        """It is gone, and whoever looks after it starts another one."""
        assert self.plan.poison is not None
        self.poisoned += 1
        self.poisoned_in_calm += self.is_calm
        worker.lose_engine(self.plan.poison)
        chance = Random(f"{self.plan.seed} {self.poisoned}")
        self.world.after(500, lambda: self._hire_into(worker.route.group, chance))

    def ask(self, group: str, request: Request) -> None:
        """An outsider asks; nobody cares for the answer."""
        self.world.note("outsider", request)
        Route(self.network, group).ask(request, lambda _: None)

    def live(self, group: str) -> Group | None:
        """The group as its manager has it."""
        owner = self.cluster.owner(group)
        return owner.coordinator.group(group) if owner is not None else None

    def members(self, group: str) -> list[Member]:
        """Who is in it, as its manager knows."""
        live = self.live(group)
        return list(live.members.values()) if live is not None else []

    def generation(self, group: str) -> int:
        """Its generation, as its manager knows."""
        live = self.live(group)
        return live.generation if live is not None else 0

    # Order in the end.

    def _calm_down(self) -> None:
        self.world.note("action", "calm")
        self.is_calm = True
        self.network.weather = self.cluster.weather = CALM
        for member in self.alive():
            member.calm_down()
        self._rebalance_all("so that the deaf are found out")

    def _rebalance_all(self, reason: str) -> None:
        for group in self.plan.groups:
            self.ask(group, StartRebalance(reason=reason))

    def _wait_for_order(self) -> None:
        end = self.world.now + (CALM_MS if self.plan.poison is None else POISONED_MS)
        while True:
            self.world.run(self.world.now + LOOK_EVERY_MS)
            try:
                self._check_order()
            except InvariantError:
                if self.world.now >= end:
                    raise
            else:
                return

    def _check_order(self) -> None:
        """Invariants 3 and 5: nobody waits for ever, groups are Stable, every runnable task is run."""
        away = [member.name for member in self.alive() if member.is_frozen or member.route.is_cut]
        away += [f"manager {m.number}" for m in self.cluster.managers if m.is_paused or not m.is_up]
        away += ["storage"] * (self.cluster.store.is_down or self.cluster.store.is_full)
        hold("all are back", not away, away)
        overdue = self.world.now - MAX_WAIT_MS
        late = [
            asked for manager in self.cluster.managers for asked in manager.asked if asked.arrived < overdue
        ]
        hold("every request is answered", not late, lambda: [asked.request for asked in late])
        self.watch.whereabouts.check_end()
        for group in self.plan.groups:
            self._check_group(group)

    def _check_group(self, group: str) -> None:
        alive = [m for m in self.alive() if m.route.group == group]
        live = self.live(group)
        if not alive:
            return
        if live is None:
            raise InvariantError("every group becomes Stable", f"{group} is nowhere")
        hold("every group becomes Stable", live.state is GroupState.STABLE, live.history_text)
        hold("all that was to move has moved", not live.tasks.to_come, live.history_text)
        present = {member.membership_id for member in alive}
        hold("members are who lives", set(live.members) == present, live.history_text)
        settled = all(member.settled_in == live.generation for member in alive)
        hold("every member knows its generation", settled, live.history_text)
        workers = [member for member in alive if isinstance(member, SimWorker)]
        running = {task: worker.membership_id for worker in workers for task in worker.owned}
        everybody_drained = all(member.row.draining for member in live.members.values())
        able = [each for each in workers if not live.members[each.membership_id].row.draining]
        offered = {row.task for row in _to_run(live) if _can_any(able, row)} - _given_up(live)
        wanted = set() if everybody_drained else offered
        quarantined = self._quarantined(group)
        hold("only what kills is in quarantine", quarantined <= {POISON}, live.history_text)
        hold("what kills is in quarantine", POISON not in wanted, live.history_text)
        hold("a poison task costs few workers", self.poisoned_in_calm <= MOST_POISONED, self.poisoned_in_calm)
        suspects = [task for task in wanted if is_suspect(live, task)]
        hold("suspects are cleared", not suspects, live.history_text)
        failed = {task for each in workers for task in each.owned if each.runs.has_failed(task)}
        unended = [task for task in running.keys() - failed if _comes_to_an_end(live.tasks.definitions[task])]
        hold("what is bounded comes to its end", not unended, unended)
        too_many = [w.name for w in workers if w.told.max_tasks and len(w.owned) > w.told.max_tasks]
        hold("nobody runs more tasks than it may", not too_many, too_many)
        alone = {row.task for row in live.tasks.definitions.values() if row.exclusive}
        shared = [w.name for w in workers if len(w.owned) > 1 and not alone.isdisjoint(w.owned)]
        hold("what is exclusive runs alone", not shared, shared)
        owners = {task: live.tasks.owner_of(task) for task in wanted if not _waits_for_room(live, task, able)}
        hold("every runnable task is run by its owner", owners == running, lambda: (owners, running))
        self._check_connectors(live, workers)

    def _check_connectors(self, live: Group, workers: list[SimWorker]) -> None:
        """A task is run by nobody who is known to lack what it needs, and how far it is behind is known."""
        rows = live.tasks.definitions
        lacking = [
            (worker.name, task)
            for worker in workers
            for task in worker.owned
            if task in rows and not _can_any([worker], rows[task])
        ]
        hold("nobody runs what its Spark lacks", not lacking, lambda: (lacking, live.history_text()))
        unknown = [task for task, row in rows.items() if row.needs == KAFKA and not _is_lag_known(live, task)]
        hold("how far a task is behind is known", not unknown, unknown)

    def _quarantined(self, group: str) -> set[str]:
        live = self.live(group)
        rows = live.tasks.ownership.values() if live is not None else ()
        return {row.task for row in rows if row.is_quarantined}

    def _await_aftermath(self) -> None:
        """Whoever heard nothing from a frozen manager finds out a session later, when all else is well.

        From here on nobody closes a connection that it keeps: whoever does, and then says nothing for a
        second, is taken for dead, and what comes of that is no rebalance for nothing.
        """
        self.network.drops = 0
        self.world.run(self.world.now + QUIET_MS)
        self._wait_for_order()

    def _rebalance_quietly(self) -> None:
        """Invariant 6: a rebalance that nothing has changed for stops no query.

        A group may be larger than its maximum (absent static members stay); then somebody is sent away. And a
        rebalance settles what was given up, after which there is less to deal. The first one after bounded
        queries have ended makes even what they have left behind.
        """
        if any(_given_up(live) for group in self.plan.groups if (live := self.live(group)) is not None):
            return
        largest = max(len(self.members(group)) for group in self.plan.groups)
        if self.plan.group_max_size is not None and largest > self.plan.group_max_size:
            return
        workers = [member for member in self.alive() if isinstance(member, SimWorker)]
        if self.watch.completed:
            self._rebalance_in_calm("bounded queries are over")
        before = sum(worker.stops for worker in workers)
        self._rebalance_in_calm("nothing has changed")
        stops = sum(worker.stops for worker in workers) - before
        hold("what need not move is not stopped", not stops, f"{stops} queries were stopped")

    def _rebalance_in_calm(self, reason: str) -> None:
        self._rebalance_all(reason)
        self.world.run(self.world.now + QUIET_MS)
        self._wait_for_order()

    def _move_quietly(self) -> None:
        """No task moves twice when somebody joins: a decision is carried out as it was made.

        Not where others join whenever somebody dies, where there is room for nobody, or where a task that is
        to be alone chooses its worker anew.
        """
        group = self.plan.groups[0]
        rows = () if (live := self.live(group)) is None else live.tasks.definitions.values()
        is_choosy = any(row.exclusive for row in rows) or (live is not None and bool(_given_up(live)))
        if self.plan.poison is not None or self.plan.group_max_size is not None or is_choosy:
            return
        self._join_quietly(group)
        for number in range(QUIET_TASKS):
            definition = NewDefinition(msgspec.Raw(b'{"sink": {"format": "sql"}}'), 1.0, None, {})
            self.ask(group, CreateTask(task=f"quiet-{number}", definition=definition, target=Target.RUNNING))
        self.world.run(self.world.now + QUIET_MS)
        self._wait_for_order()
        before, stops = self._running(group), self._stops(group)
        self._join_quietly(group)
        after = self._running(group)
        moved = [task for task, worker in before.items() if after.get(task) != worker]
        stopped = self._stops(group) - stops
        hold("a task moves once", stopped == len(moved), lambda: (stopped, moved, before, after))

    def _join_quietly(self, group: str) -> None:
        self._hire_into(group, Random(f"newcomer {self.plan.seed} {len(self.members_hired)}"), is_new=True)
        self.members_hired[-1].calm_down()
        self.world.run(self.world.now + QUIET_MS)
        self._wait_for_order()

    def _running(self, group: str) -> dict[str, str]:
        return {task: worker.name for worker in self._workers(group) for task in worker.owned}

    def _stops(self, group: str) -> int:
        """Also of those that are gone: a newcomer may be the next process of one that was there."""
        hired = [each for each in self.members_hired if isinstance(each, SimWorker)]
        return sum(worker.stops for worker in hired if worker.route.group == group)

    def _workers(self, group: str) -> list[SimWorker]:
        return [each for each in self.alive() if isinstance(each, SimWorker) and each.route.group == group]

    def _figures(self) -> Figures:
        return Figures(
            histories=1,
            steps=self.world.steps,
            requests=sum(manager.requests for manager in self.cluster.managers),
            crashes=self.cluster.crashes,
            takeovers=self.cluster.takeovers,
            rebalances=self.watch.rebalances,
            fenced_writes=self.sink.refused,
            unfenced_writes=self.sink.unfenced,
            resets=self.watch.resets,
            poisoned=self.poisoned,
            paced=sum(each.leader.put_off for each in self.members_hired if isinstance(each, SimWorker)),
            completed=self.watch.completed,
            transferred=self.watch.whereabouts.steps.done,
            kept=self.watch.whereabouts.steps.cancelled,
            quarantined=sum(POISON in self._quarantined(group) for group in self.plan.groups),
        )


def _can_any(workers: Iterable[SimWorker], row: TaskRow) -> bool:
    """Whether one of the workers may have what the task needs."""
    return row.needs is None or any(worker.can(row.needs) for worker in workers)


def _to_run(live: Group) -> Iterable[TaskRow]:
    """The tasks that somebody is to have; none that a member could not settle, or would begin anew."""
    is_possible, are_known = settling.is_possible(live), homes.are_known(live)
    return (
        row
        for row in live.tasks.runnable()
        if (is_possible or row.target is not Target.STOPPED)
        and (are_known or not homes.has_home(live, row.task))
    )


def _comes_to_an_end(row: TaskRow) -> bool:
    return row.target is Target.RUNNING and is_bounded(row.definition)


def _is_lag_known(live: Group, task: str) -> bool:
    progress = live.tasks.progress.get(task)
    return progress is not None and progress.lag is not None


def _waits_for_room(live: Group, task: str, workers: Iterable[SimWorker]) -> bool:
    """Whether nobody runs it, and whoever might has as many tasks as it may have, or one that is exclusive.

    One that is exclusive itself may always wait: whether a worker can be spared is tried with the assignors.
    """
    rows = live.tasks.definitions
    able = [worker for worker in workers if _can_any([worker], rows[task])]
    full = [w for w in able if len(w.owned) == w.told.max_tasks or any(rows[t].exclusive for t in w.owned)]
    return live.tasks.owner_of(task) is None and (bool(rows[task].exclusive) or len(full) == len(able))


def _given_up(live: Group) -> set[str]:
    """Stopped tasks whose sink did not answer: they are offered again with the next rebalance."""
    registry = live.tasks
    rows = (
        registry.ownership_of(live.name, task) for task in registry.definitions if registry.is_to_stop(task)
    )
    return {row.task for row in rows if row.owner is None and row.cause is not None}
