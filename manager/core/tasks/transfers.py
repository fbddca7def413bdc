"""Giving tasks to another group, and getting them from one: a saga over two groups (protocol §5, Transfers).

Two groups never share a transaction, for two managers may have them. So each keeps rows of its own, and does
what follows from those that the other one has stored. The group that tasks leave decides, once for all of
them: GIVEN and CANCELLED are steps of its rows, of which only one can ever come true. The other group has the
tasks STOPPED until it has seen GIVEN, and lets go of them when it has seen anything else that is final. So
whoever carries word between them may die at any moment, say it twice, or late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from manager.core import checks, scheduling
from manager.core.stored_rows import OwnershipRow, Parcel, TransferRow
from manager.core.tasks import carried_history, definitions, former_owners
from manager.core.tasks.homes import home_after
from manager.core.transfer_commands import TransferRows
from protocol.errors import ErrorCode, RefusedError
from protocol.fencing import next_number
from protocol.messages.events import EventType
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TaskState, TransferStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
    from manager.core.turn import Turn

MAX_CAUSE_LENGTH: Final = 500
CANCELLABLE: Final = frozenset({TransferStep.STOPPING, TransferStep.STOPPED})
GONE: Final = frozenset({TransferStep.GIVEN, TransferStep.DONE})
TOLD: Final = {
    TransferStep.STOPPING: EventType.TRANSFER_STARTED,
    TransferStep.GIVEN: EventType.TRANSFER_GIVEN,
    TransferStep.DONE: EventType.TRANSFER_COMPLETED,
    TransferStep.CANCELLED: EventType.TRANSFER_CANCELLED,
}


def start(turn: Turn, request: StartTransfer, parked: Parked) -> None:
    """Stop the tasks and note down where they go; all of them or, if anything is wrong with one, none.

    A group that never had members is none once all its tasks have left, and knows what became of them.
    """
    group = turn.group
    checks.not_dead(group)
    if known := group.transfers.of(request.transfer):
        _check_same(known, request)
    else:
        for task in request.tasks:
            checks.task(group, task)
            checks.not_moving(group, task)
        if not request.validate_only:
            for task, to_task in request.tasks.items():
                _stop(turn, request, task, to_task)
            _pack(turn, request.transfer)
    turn.answer(parked, TransferRows(rows=group.transfers.of(request.transfer)))


def _check_same(known: Sequence[TransferRow], request: StartTransfer) -> None:
    """Whoever asks for something else under the id of a transfer would wait for what nobody does."""
    asked = {(request.to_group, task, to_task) for task, to_task in request.tasks.items()}
    if asked != {(row.peer_group, row.task, row.peer_task) for row in known if row.leaves}:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"id: {request.transfer} is that of a transfer of other tasks"
        )


def _stop(turn: Turn, request: StartTransfer, task: str, to_task: str) -> None:
    definition = turn.group.tasks.definitions[task]
    now = turn.instant.wall
    row = TransferRow(
        group=turn.group.name,
        transfer=request.transfer,
        task=task,
        leaves=True,
        peer_group=request.to_group,
        peer_task=to_task,
        step=TransferStep.STOPPING,
        target=definition.target,
        started_at_ms=now,
        changed_at_ms=now,
        by=request.by,
    )
    _store(turn, row)
    turn.note(f"task {task} goes to group {request.to_group} as {to_task}: transfer {request.transfer}")
    definitions.retarget(turn, definition, Target.STOPPED)


def cancel(turn: Turn, request: CancelTransfer, parked: Parked) -> None:
    """Have the tasks go on here, unless they are the other group's already.

    Raises:
        RefusedError: UNKNOWN_TRANSFER, or TASK_TRANSFERRED beyond the point of no return.
    """
    group = turn.group
    checks.not_dead(group)
    rows = [row for row in group.transfers.of(request.transfer) if row.leaves]
    if not rows:
        checks.known(group)
        raise RefusedError(ErrorCode.UNKNOWN_TRANSFER, f"group {group.name} gives no {request.transfer}")
    if rows[0].step in GONE:
        message = (
            f"the tasks of transfer {request.transfer} are group {rows[0].peer_group}'s:"
            " start a transfer from there to have them back"
        )
        raise RefusedError(ErrorCode.TASK_TRANSFERRED, message)
    _cancel(turn, rows, request.cause)
    turn.answer(parked, TransferRows(rows=group.transfers.of(request.transfer)))


def advance(turn: Turn, request: AdvanceTransfer, parked: Parked) -> None:
    """Go as far as what the other group has stored allows; the same word twice changes nothing.

    A group that gets tasks goes by the transfer that it knows: one under the same id began at another time.
    """
    group = turn.group
    checks.not_dead(group)
    ours = group.transfers.of(request.transfer)
    if any(row.leaves for row in ours):
        _give(turn, request)
    else:
        began = {row.started_at_ms for row in ours}
        _get(turn, ours, [row for row in request.peers if row.leaves and {row.started_at_ms} >= began])
    turn.answer(parked, TransferRows(rows=group.transfers.of(request.transfer)))


# The group that the tasks leave.


def _give(turn: Turn, request: AdvanceTransfer) -> None:
    rows = [row for row in _pack(turn, request.transfer) if row.leaves]
    peer = rows[0].peer_group
    theirs = {row.task: row.step for row in request.peers if not row.leaves and row.group == peer}
    come = [theirs.get(row.peer_task) for row in rows]
    steps = {row.step for row in rows}
    if steps <= CANCELLABLE and any(row.leaves for row in request.peers):
        _cancel(turn, rows, "another group has begun a transfer under its id")
    elif steps <= CANCELLABLE and TransferStep.REFUSED in come:
        _cancel(turn, rows, f"group {rows[0].peer_group} cannot take them", theirs)
    elif steps == {TransferStep.STOPPED} and set(come) == {TransferStep.ARRIVED}:
        for row in rows:
            _come_to(turn, row, TransferStep.GIVEN)
    elif steps == {TransferStep.GIVEN} and set(come) == {TransferStep.STARTED}:
        for row in rows:
            _leave(turn, row)
        _forget_oldest(turn)


def _forget_oldest(turn: Turn) -> None:
    for old in turn.group.transfers.too_old():
        turn.drop(old)


def _pack(turn: Turn, transfer: str) -> tuple[TransferRow, ...]:
    """Pack what has stopped: nobody runs it, nor may still do so without a fence. Returns the rows."""
    registry = turn.group.transfers
    for row in registry.of(transfer):
        if row.step is TransferStep.STOPPING and _is_at_rest(turn.group, row.task):
            parcel = _parcel(turn.group, row.task)
            _come_to(turn, row, TransferStep.STOPPED, parcel=parcel)
            if (
                parcel.ownership.unsettled
            ):  # or a worker would be given it, under a token above the packed one
                turn.update(turn.group.tasks.ownership[row.task], unsettled=False)
    return registry.of(transfer)


def _is_at_rest(group: Group, task: str) -> bool:
    ownership = group.tasks.ownership_of(group.name, task)
    return ownership.owner is None and former_owners.holder(ownership) is None


def _parcel(group: Group, task: str) -> Parcel:
    registry = group.tasks
    ownership = registry.ownership_of(group.name, task)
    home = ownership.home or TaskHome(group.name, task)
    reached = registry.reached_by(task)
    return Parcel(
        registry.definitions[task],
        msgspec.structs.replace(ownership, home=home, reached=reached),
        history=carried_history.packed(group, task),
    )


def _cancel(
    turn: Turn, rows: Sequence[TransferRow], cause: str, theirs: dict[str, TransferStep] | None = None
) -> None:
    """What was wanted of the tasks is wanted again."""
    if theirs:
        refused = ", ".join(name for name, step in theirs.items() if step is TransferStep.REFUSED)
        cause = f"{cause}: it has tasks of these names, or may not be changed: {refused}"
    for row in rows:
        if row.step in CANCELLABLE:
            _come_to(turn, row, TransferStep.CANCELLED, parcel=None, cause=cause[:MAX_CAUSE_LENGTH])
            _go_on(turn, row)
    _forget_oldest(turn)


def _leave(turn: Turn, row: TransferRow) -> None:
    """The task is the other group's; a later one of its name is another one to sinks and checkpoints.

    The token grows, for a task may leave that nobody has ever owned: the next one that leaves so would be
    known by the names of this one.
    """
    group = turn.group
    _come_to(turn, row, TransferStep.DONE, parcel=None)
    definitions.remove(turn, group.tasks.definitions[row.task])
    left = group.tasks.ownership[row.task]
    token = next_number(left.token, turn.instant.wall)
    home = TaskHome(group.name, home_after(row.task, token))
    turn.update(left, token=token, home=home, reset=None, reached=None, unsettled=False)


# The group that the tasks go to.


def _get(turn: Turn, ours: Sequence[TransferRow], theirs: Sequence[TransferRow]) -> None:
    """`theirs` are all rows of the transfer where tasks leave; without any it was forgotten.

    Groups that have begun one each under the same id cancel it, as long as they can.
    """
    if ours:
        theirs = [row for row in theirs if row.group == ours[0].peer_group]
    elif len({row.group for row in theirs}) > 1:
        return
    steps = {row.step for row in theirs}
    if steps == {TransferStep.STOPPED} and not ours:
        _arrive(turn, theirs)
    elif steps == {TransferStep.GIVEN}:
        for row in ours:
            if row.step is TransferStep.ARRIVED:
                _begin(turn, row)
    elif steps <= {TransferStep.CANCELLED} or steps == {TransferStep.DONE}:
        for row in ours:
            _settle(turn, row)


def _arrive(turn: Turn, theirs: Sequence[TransferRow]) -> None:
    """Take all of them in, STOPPED, under tokens above all before; or say of all that this cannot be."""
    group = turn.group
    taken = {row.peer_task for row in theirs if _is_taken(group, row.peer_task)}
    for row in theirs:
        if row.parcel is None:
            continue
        parcel = None if taken else _unpack(turn, row.peer_task, row.parcel)
        cause = "there is a task of that name" if row.peer_task in taken else None
        _store(turn, _mirrored(turn, row, parcel, cause))


def _is_taken(group: Group, task: str) -> bool:
    return task in group.tasks.definitions or task in group.transfers.moving


def _mirrored(turn: Turn, row: TransferRow, parcel: Parcel | None, cause: str | None) -> TransferRow:
    return msgspec.structs.replace(
        row,
        group=turn.group.name,
        task=row.peer_task,
        leaves=False,
        peer_group=row.group,
        peer_task=row.task,
        step=TransferStep.REFUSED if parcel is None else TransferStep.ARRIVED,
        changed_at_ms=turn.instant.wall,
        cause=cause,
        parcel=parcel,
    )


def _unpack(turn: Turn, task: str, parcel: Parcel) -> Parcel:
    """Returns the parcel with what was known of the name before."""
    group = turn.group
    known = group.tasks.ownership_of(group.name, task)
    turn.put(_moved_in(turn, known, parcel.ownership))
    row = msgspec.structs.replace(parcel.task, group=group.name, task=task, target=Target.STOPPED)
    definitions.change(turn, row, EventType.TASK_CREATED)
    carried_history.unpack(turn, task, parcel.history)
    return msgspec.structs.replace(parcel, former=known)


def _moved_in(turn: Turn, known: OwnershipRow, packed: OwnershipRow) -> OwnershipRow:
    """The ownership as it goes on here. What is unsettled stays so, which waits until it is to run."""
    own = TaskHome(known.group, known.task)
    is_complete = packed.state is TaskState.COMPLETED
    return msgspec.structs.replace(
        packed,
        group=known.group,
        task=known.task,
        token=next_number(max(known.token, packed.token), turn.instant.wall),
        state=TaskState.COMPLETED if is_complete else TaskState.STOPPED,
        generation_id=turn.group.generation,
        since_ms=turn.instant.wall,
        lost_by=None,
        lease=None,
        unsettled=False,
        home=None if packed.home == own else packed.home,
    )


def _begin(turn: Turn, row: TransferRow) -> None:
    """It is ours: what was wanted of it before is wanted here."""
    _come_to(turn, row, TransferStep.STARTED, parcel=None)
    _go_on(turn, row)


def _settle(turn: Turn, row: TransferRow) -> None:
    """The other group has come to the end: what was not given is let go of."""
    turn.drop(row)
    if row.step is TransferStep.ARRIVED and row.parcel is not None:
        definitions.remove(turn, turn.group.tasks.definitions[row.task])
        _restore(turn, row.parcel.former or OwnershipRow(group=row.group, task=row.task))


def _restore(turn: Turn, former: OwnershipRow) -> None:
    """A later task of the name is the one that was there before, not the one that stays in its group."""
    group = turn.group
    if former.lease is not None:
        group.timers.set(former_owners.key(former.task), turn.now + former.lease.timeout_ms)
    turn.update(
        group.tasks.ownership[former.task],
        home=former.home,
        reset=former.reset,
        reached=former.reached,
        unsettled=former.unsettled,
        lease=former.lease,
    )


# Both.


def _go_on(turn: Turn, row: TransferRow) -> None:
    """What was wanted of the task is wanted again; who may still write for it is to be told so again."""
    registry = turn.group.tasks
    if row.parcel is not None and row.parcel.ownership.unsettled:
        turn.update(registry.ownership[row.task], unsettled=True)
    if registry.ownership[row.task].unsettled:
        scheduling.rebalance_soon(turn)
    definitions.retarget(turn, registry.definitions[row.task], row.target, pardons=False)


def _come_to(turn: Turn, row: TransferRow, step: TransferStep, **changes: object) -> None:
    _store(turn, msgspec.structs.replace(row, step=step, changed_at_ms=turn.instant.wall, **changes))


def _store(turn: Turn, row: TransferRow) -> None:
    turn.put(row)
    if row.leaves and row.step in TOLD:
        turn.tell(
            TOLD[row.step],
            task=row.task,
            transfer=row.transfer,
            to_group=row.peer_group,
            to_task=row.peer_task,
            cause=row.cause,
        )
