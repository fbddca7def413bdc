"""The invariants themselves: what they forbid, and what they do not."""

from __future__ import annotations

import pytest

from manager.core.member import Connection
from manager.core.stored_rows import Dropped, GroupRow
from protocol.messages.base import NULL
from protocol.messages.membership import JoinedMember, JoinRequest, JoinResponse, Protocol
from tests.simulation.invariants import Watch
from tests.simulation.manager import Asked
from tests.simulation.store import Rows, Store
from tests.simulation.violations import InvariantError

JOIN = JoinRequest(
    member_id="",
    session_timeout_ms=1,
    rebalance_timeout_ms=1,
    protocol_type="test",
    protocols=(Protocol("range", NULL),),
)


def deleted_after(generations: int) -> tuple[Watch, Rows]:
    """A group got so far, was deleted, and another of its name is in its first generation."""
    watch = Watch()
    store = Store(watch, slots=1)
    told = [GroupRow(group="g", generation=n) for n in range(generations + 1)]
    namesake = [GroupRow(group="g", generation=n) for n in range(2)]
    assert store.commit({"g": [*told, Dropped(GroupRow, ("g",)), *namesake]}, fence={})
    return watch, store.rows("g")


def told(watch: Watch, rows: Rows, generation: int, deleted: int, member: str = "m") -> None:
    """A manager answers a join in a group before which so many of its name were deleted."""
    asked = Asked("g", JOIN, 0, lambda _: None, Connection("sim"))
    asked.deleted = deleted
    joined = JoinResponse(
        generation_id=generation,
        protocol_type="test",
        protocol_name="range",
        leader_id=member,
        member_id=member,
        members=(JoinedMember(member, None, NULL),),
    )
    watch.check_answer(asked, joined, rows)


def test_an_answer_is_measured_by_the_group_it_tells_of() -> None:
    """A manager that was frozen tells of a group that was deleted and made again meanwhile."""
    watch, rows = deleted_after(2)
    told(watch, rows, 2, deleted=0)
    told(watch, rows, 1, deleted=0)
    told(watch, rows, 1, deleted=1, member="another")


def test_a_generation_of_a_namesake_is_not_the_groups_own() -> None:
    """What was durable in the group before is not durable in this one."""
    watch, rows = deleted_after(2)
    with pytest.raises(InvariantError, match="a generation is durable before it is told"):
        told(watch, rows, 2, deleted=1)


def test_a_generation_has_one_roster() -> None:
    """Two leaders of one generation would deal the tasks twice."""
    watch, rows = deleted_after(2)
    told(watch, rows, 2, deleted=0)
    with pytest.raises(InvariantError, match="a generation is told once"):
        told(watch, rows, 2, deleted=0, member="another")
