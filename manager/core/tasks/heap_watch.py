"""Finds out with which task a worker's heap grows, tells it, and does what its definition wants done then.

The rule is that of `manager.core.heap.suspects`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from definition.limits import heap_limit_in
from manager.core import scheduling
from manager.core.heap.marks import Doing
from manager.core.heap.stretches import Holder
from manager.core.heap.suspects import EVERY_MS
from manager.core.task_registry import LIVE_STATES
from manager.core.tasks import definitions, heap_candidates, quarantining
from manager.core.tasks.heap_shown import MIB, said
from manager.core.tasks.offers import Offers
from protocol.messages.events import EventType
from protocol.states import Target
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.heap.suspects import Suspicion
    from manager.core.member import Member
    from manager.core.stored_rows import TaskRow
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn
    from protocol.messages.resources import WorkerResources


def note(turn: Turn, member: Member, told: WorkerResources) -> None:
    """Take in what a worker takes; of one whose tasks have a JVM each only that they hold no more in all."""
    if not told.heap_max_bytes:
        return
    registry = turn.group.tasks
    judged = registry.heap.look(
        member.id,
        frozenset(_running(registry, member.id)),
        low=told.heap_live_bytes,
        ceiling=told.heap_after_gc_bytes,
        heap_max=told.heap_max_bytes,
        doing=dict(_doing(registry, member.id)),
        at_ms=turn.now,
    )
    if judged is not None:
        for suspicion in judged.news:
            _tell(turn, suspicion)
        for suspicion in judged.standing:
            if registry.heap.is_firm(suspicion, turn.now):
                _act(turn, suspicion)
    if heap_candidates.waits_for_that(turn.group) or _is_another_to_be_seen_alone(turn):
        scheduling.rebalance_soon(turn)


def _is_another_to_be_seen_alone(turn: Turn) -> bool:
    """Looked at from time to time: there may be many candidates, and all workers tell their figures."""
    heap = turn.group.tasks.heap
    if heap.asked_ms is not None and turn.now - heap.asked_ms < EVERY_MS:
        return False
    heap.asked_ms = turn.now
    return heap_candidates.to_be_seen_alone(turn.group, Offers(turn.group), turn.now) != heap.apart


def _running(registry: TaskRegistry, member_id: str) -> Iterator[Holder]:
    for task in registry.owned_by(member_id):
        if registry.ownership[task].state in LIVE_STATES and task in registry.definitions:
            yield Holder(task, registry.definitions[task].definition_version)


def _doing(registry: TaskRegistry, member_id: str) -> Iterator[tuple[str, Doing]]:
    for task in registry.owned_by(member_id):
        progress = registry.progress.get(task)
        if progress is not None:
            taken = figures(progress.metrics, "state").get("memory_bytes")
            yield task, Doing(progress.batch_id, None if taken is None else int(taken))


def _tell(turn: Turn, suspicion: Suspicion) -> None:
    task = suspicion.holder.task
    cause = said(suspicion)
    turn.note(f"task {task} is suspected: {cause}")
    turn.tell(
        EventType.TASK_SUSPECTED,
        task=task,
        member=suspicion.stretch.member_id,
        generation_id=turn.group.generation,
        cause=cause,
    )


def _act(turn: Turn, suspicion: Suspicion) -> None:
    """As its definition says; a warning is the suspicion itself."""
    registry, task = turn.group.tasks, suspicion.holder.task
    row = registry.definitions[task]
    limit = heap_limit_in(row.definition)
    if limit is None or limit.action == "warn" or suspicion.rise.bytes <= limit.max * MIB:
        return
    cause = f"limits.heap_mb: {said(suspicion)}, more than {limit.max:,.6g} MiB"
    if limit.action == "restart":
        _restart(turn, row, cause)
    elif row.target is Target.RUNNING:
        quarantining.impose(turn, task, cause, suspicion.stretch.member_id)


def _restart(turn: Turn, row: TaskRow, cause: str) -> None:
    """What it kept goes with its query; what grows from then on is looked at anew."""
    turn.note(f"task {row.task} is started anew: {cause}")
    restarted = msgspec.structs.replace(row, restart_count=row.restart_count + 1)
    definitions.change(turn, restarted, cause=cause)
    turn.group.tasks.heap.forget(row.task)
