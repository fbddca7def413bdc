"""The clock of each member: renewed by what arrives, stopped while it waits (protocol §4, Sessions)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import connections

if TYPE_CHECKING:
    from manager.core.group import Group, TimerKey
    from manager.core.member import Member, Parked
    from manager.core.turn import Turn

SESSION = "session"


def key(member: Member) -> TimerKey:
    """The timer of a member's session."""
    return (SESSION, member.id)


def is_parked(group: Group, member: Member) -> bool:
    """Whether the member waits for a join or a sync to be answered; it does not expire while it does."""
    return member.id in group.joining or member.parked_sync is not None


def request_accepted(turn: Turn, member: Member, parked: Parked) -> None:
    """An accepted request of `member` arrived: its session starts anew."""
    connections.carry(turn.group, member, parked.connection)
    note_contact(turn, member)
    renew(turn, member)


def note_contact(turn: Turn, member: Member) -> None:
    """An accepted request of `member` is here; what it holds on to is the worker's own lease on itself."""
    member.last_heartbeat_ms = turn.instant.wall
    member.heard_at = turn.now


def renew(turn: Turn, member: Member) -> None:
    """A full session from now on, unless the member is parked."""
    group = turn.group
    if not is_parked(group, member):
        group.timers.set(key(member), turn.now + member.row.session_timeout_ms)


def suspend(turn: Turn, member: Member) -> None:
    """Stop the session of a member that is being parked.

    One that was never confirmed may be nobody at all: it gets `new_member_timeout_ms`, once.
    """
    group = turn.group
    if member.confirmed:
        group.timers.cancel(key(member))
    elif key(member) not in group.timers:
        group.timers.set(key(member), turn.now + group.settings.new_member_timeout_ms)


def shorten(turn: Turn, member: Member) -> None:
    """The connections of `member` are closed: leave it `disconnect_grace_ms`, never more than it had."""
    group = turn.group
    grace = turn.now + group.settings.disconnect_grace_ms
    deadline = group.timers.deadline(key(member))
    group.timers.set(key(member), grace if deadline is None else min(deadline, grace))


def resume(turn: Turn, member: Member) -> None:
    """A member that is no longer parked is on the clock again, if it was not."""
    if key(member) not in turn.group.timers:
        renew(turn, member)
