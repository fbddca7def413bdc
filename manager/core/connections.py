"""What the closing of a connection says of a member (protocol §4, Broken connections).

A process that dies closes every connection that it has. One that lives closes some as well: after each
request, because its pool has one too many, because nothing went over it for a while. So a connection counts
as a member's own while a request of it waits there, and once it has carried two in succession: it is kept.
One that carries the requests of several members, as a proxy's may, is nobody's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Connection, Member

QUIET_MS: Final = 2000
"""Silence of a member after which a connection that it closes was just idle.

Clients close what they have not used for a few seconds, and may have nothing to say for longer than that.
"""


def carry(group: Group, member: Member, connection: Connection) -> None:
    """An accepted request of `member` came over `connection`; none before it waits there any more."""
    connection.waiting = None
    if connection.member is not member:
        _change_hands(group, member, connection)
    elif not connection.is_kept:
        _keep(member, connection)
    member.heard_over = connection


def _change_hands(group: Group, member: Member, connection: Connection) -> None:
    before = connection.member
    if before is not None and not is_gone(group, connection):
        connection.is_shared = True
        before.kept.discard(connection)
    connection.group, connection.member, connection.is_kept = group.name, member, False


def is_gone(group: Group, connection: Connection) -> bool:
    """Whether the member that `connection` carried is one of `group` no longer, under that id at least."""
    member = connection.member
    if member is None or connection.group != group.name:
        return member is None
    return group.members.get(member.id) is not member


def matters_to(group: Group, connection: Connection) -> bool:
    """Whether the closing of `connection` is of any concern: to a present member, or to an errand."""
    return not is_gone(group, connection) or _waits_for_errand(group, connection)


def _waits_for_errand(group: Group, connection: Connection) -> bool:
    return any(errand.parked.connection is connection for errand in group.tasks.errands.values())


def _keep(member: Member, connection: Connection) -> None:
    if connection.is_open and connection.member is member and not connection.is_shared:
        connection.is_kept = True
        member.kept.add(connection)


def was_in_use(now: int, member: Member, connection: Connection) -> bool:
    """Whether a connection that `member` closes was kept, and not just idle; `now` is the present, in ms.

    Those of a process that dies close one by one, the idle ones as well.
    """
    return connection.is_kept and now <= max(member.heard_at, member.closed_at) + QUIET_MS


def lose(group: Group, member: Member, connection: Connection) -> bool:
    """A connection that `member` had in use is closed; whether it has no other of its own.

    The one that it was heard over last will do. It counts as kept from now on: should it close as well, the
    process is gone.
    """
    member.kept.discard(connection)
    if member.heard_over is not None:
        _keep(member, member.heard_over)
    return not member.kept and not _waits(group, member)


def _waits(group: Group, member: Member) -> bool:
    if member.id in group.joining or member.parked_sync is not None or member.held_heartbeat is not None:
        return True
    return any(claim.member_id == member.id for claim in group.tasks.waiting.values())
