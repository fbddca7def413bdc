"""The five states of a group and their legal moves, as one table (protocol §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transitions import Machine, MachineError

from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.turn import Turn

PREPARE = "prepare"
COMPLETE = "complete"
EMPTY_OUT = "empty_out"
STABILISE = "stabilise"
BURY = "bury"

TRANSITIONS: tuple[tuple[str, tuple[GroupState, ...], GroupState], ...] = (
    (
        PREPARE,
        (GroupState.EMPTY, GroupState.STABLE, GroupState.AWAITING_SYNC),
        GroupState.PREPARING_REBALANCE,
    ),
    (COMPLETE, (GroupState.PREPARING_REBALANCE,), GroupState.AWAITING_SYNC),
    (EMPTY_OUT, (GroupState.PREPARING_REBALANCE,), GroupState.EMPTY),
    (STABILISE, (GroupState.AWAITING_SYNC,), GroupState.STABLE),
    (BURY, tuple(GroupState), GroupState.DEAD),
)

_MACHINE = Machine(
    model=None,
    states=GroupState,
    initial=GroupState.EMPTY,
    transitions=[
        {"trigger": trigger, "source": list(sources), "dest": target}
        for trigger, sources, target in TRANSITIONS
    ],
    auto_transitions=False,
)


class IllegalGroupTransitionError(Exception):
    """A move the table does not have: a bug. The group stays as it was; the text tells its history."""


def move(turn: Turn, trigger: str) -> None:
    """Take the group along one arrow of the table.

    Raises:
        IllegalGroupTransitionError: the table has no such arrow from the present state; nothing changed.
    """
    group = turn.group
    before = group.state
    try:
        _MACHINE.events[trigger].trigger(group)
    except MachineError as error:
        raise IllegalGroupTransitionError(
            f"group {group.name}: no move {trigger!r} from {before.value}; history: {group.history_text()}"
        ) from error
    turn.note(f"{before.value} -> {group.state.value}")
