from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.stored_rows import GroupRow
from manager.storage.sql_storage import SqlStorage
from protocol.messages.assignors import AnnouncedAssignor, GroupAssignors
from tests.integration.manager.members import member_row
from tests.integration.node import running

if TYPE_CHECKING:
    from manager.core.stored_rows import Row
    from tests.integration.manager.backends import Database


ROWS: list[Row] = [
    GroupRow(group="g", generation=7, protocol_type="sparkherd", protocol_name="sticky", leader_id="a"),
    member_row("a", "sticky", "range", "own"),
    member_row("b", "sticky", "sticky", "range"),
    member_row("c", "range", "sticky"),
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
