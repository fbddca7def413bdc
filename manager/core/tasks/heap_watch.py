"""Finds out with which task a worker's heap grows, tells it, and does what its definition wants done then.

The rule is that of `manager.core.heap_suspects`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from definition.limits import heap_limit_in
from manager.core.heap_stretches import Holder
from manager.core.task_registry import LIVE_STATES
from manager.core.tasks import definitions, quarantining
from manager.core.tasks.heap_shown import MIB, said
from protocol.messages.events import EventType
from protocol.states import Target
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.heap_suspects import Suspicion
    from manager.core.member import Member
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn
    from protocol.messages.resources import WorkerResources


def note(turn: Turn, member: Member, told: WorkerResources) -> None:
    """Take in what a worker takes; of one whose tasks have a JVM each only that they hold no more in all."""
    if not told.heap_max_bytes:
        return
    registry = turn.group.tasks
    new = registry.heap.look(
        member.id,
        frozenset(_running(registry, member.id)),
        low=told.heap_live_bytes,
        ceiling=told.heap_after_gc_bytes,
        heap_max=told.heap_max_bytes,
        state=dict(_states(registry, member.id)),
        at_ms=turn.now,
    )
    for suspicion in new:
        _tell(turn, suspicion)
    for task, suspicion in tuple(registry.heap.suspicions.items()):
        if task not in registry.heap.acted_upon:
            _act(turn, suspicion)


def _running(registry: TaskRegistry, member_id: str) -> Iterator[Holder]:
    for task in registry.owned_by(member_id):
        if registry.ownership[task].state in LIVE_STATES and task in registry.definitions:
            yield Holder(task, registry.definitions[task].definition_version)


def _states(registry: TaskRegistry, member_id: str) -> Iterator[tuple[str, int]]:
    for task in registry.owned_by(member_id):
        progress = registry.progress.get(task)
        state = figures(progress.metrics if progress is not None else None, "state")
        if "memory_bytes" in state:
            yield task, int(state["memory_bytes"])


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
    registry.heap.acted_upon.add(task)
    if limit.action == "restart":
        definitions.change(turn, msgspec.structs.replace(row, restart_count=row.restart_count + 1))
    elif row.target is Target.RUNNING:
        cause = f"limits.heap_mb: {said(suspicion)}, more than {limit.max:,.6g} MiB"
        quarantining.impose(turn, task, cause, suspicion.stretch.member_id)
