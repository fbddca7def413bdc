"""The states of a member and their legal moves, as one table (protocol §7)."""

from __future__ import annotations

from enum import Enum, StrEnum

from transitions import Machine, MachineError


class MemberState(Enum):
    """Where a worker stands towards its group."""

    DOWN = "Down"
    PREPARING_JOIN = "PreparingJoin"
    JOINING = "Joining"
    SYNCING = "Syncing"
    STABLE = "Stable"
    LEAVING = "Leaving"


class Transition(StrEnum):
    """What takes a member from one state to another."""

    START = "start"
    JOIN = "join"
    JOINED = "joined"
    SYNCED = "synced"
    REJOIN = "rejoin"
    LEAVE = "leave"
    END = "end"


_IN_THE_GROUP = (
    MemberState.PREPARING_JOIN,
    MemberState.JOINING,
    MemberState.SYNCING,
    MemberState.STABLE,
)

TRANSITIONS: tuple[tuple[Transition, tuple[MemberState, ...], MemberState], ...] = (
    (Transition.START, (MemberState.DOWN,), MemberState.PREPARING_JOIN),
    (Transition.JOIN, (MemberState.PREPARING_JOIN,), MemberState.JOINING),
    (Transition.JOINED, (MemberState.JOINING,), MemberState.SYNCING),
    (Transition.SYNCED, (MemberState.SYNCING,), MemberState.STABLE),
    (Transition.REJOIN, _IN_THE_GROUP, MemberState.PREPARING_JOIN),
    (Transition.LEAVE, _IN_THE_GROUP, MemberState.LEAVING),
    (Transition.END, tuple(MemberState), MemberState.DOWN),
)


class IllegalMemberTransitionError(Exception):
    """A move that the table does not have: a bug. The member stays where it was."""


class States:
    """The present state of one member; it changes along the table only."""

    state: MemberState

    def __init__(self) -> None:
        self._machine = Machine(
            model=self,
            states=MemberState,
            initial=MemberState.DOWN,
            transitions=[
                {"trigger": move.value, "source": list(sources), "dest": target}
                for move, sources, target in TRANSITIONS
            ],
            auto_transitions=False,
        )

    def take(self, move: Transition) -> None:
        """Go where `move` leads from here.

        Raises:
            IllegalMemberTransitionError: it leads nowhere from the present state; nothing has changed.
        """
        try:
            self._machine.events[move.value].trigger(self)
        except MachineError as error:
            raise IllegalMemberTransitionError(f"no move {move.value!r} from {self.state.value}") from error
