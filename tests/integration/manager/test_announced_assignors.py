from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.rows import GroupRow, MemberRow
from manager.storage.sql import SqlStorage
from protocol.messages.assignors import AnnouncedAssignor, GroupAssignors
from protocol.messages.base import encode_opaque
from protocol.messages.membership import Protocol
from tests.integration.node import running

if TYPE_CHECKING:
    from manager.core.rows import Row
    from tests.integration.manager.backends import Database


def member(name: str, *assignors: str) -> MemberRow:
    return MemberRow(
        group="g",
        member_id=name,
        position=0,
        instance_id=None,
        client_id=name,
        host="h",
        session_timeout_ms=600_000,
        rebalance_timeout_ms=600_000,
        protocols=tuple(Protocol(assignor, encode_opaque({"owned": {}})) for assignor in assignors),
    )


ROWS: list[Row] = [
    GroupRow(group="g", generation=7, protocol_type="sparkherd", protocol_name="sticky", leader_id="a"),
    member("a", "sticky", "range", "own"),
    member("b", "sticky", "sticky", "range"),
    member("c", "range", "sticky"),
    GroupRow(group="empty", generation=1),
]


def assignor(name: str, members: int, *, candidate: bool = False, chosen: bool = False) -> AnnouncedAssignor:
    return AnnouncedAssignor(assignor=name, members=members, is_candidate=candidate, is_chosen=chosen)


async def test_what_members_announce_is_the_same_from_memory_and_from_storage(
    database: Database, storage: SqlStorage
) -> None:
    """Counted once a member; whatever all announce can be chosen. Without members nothing is announced."""
    await storage.commit(ROWS)
    expected = GroupAssignors(
        group="g",
        protocol_type="sparkherd",
        members=3,
        assignors=(
            assignor("range", 3, candidate=True),
            assignor("sticky", 3, candidate=True, chosen=True),
            assignor("own", 1),
        ),
    )
    assert await storage.announced_assignors() == [expected]
    async with running(SqlStorage(database.url)) as runtime:
        assert runtime.announced_assignors() == [expected]
