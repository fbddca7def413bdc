from __future__ import annotations

import pytest

from manager.core import expected
from protocol.messages.base import encode_opaque
from protocol.messages.membership import JoinRequest, Protocol
from tests.unit.manager.core.bench import SESSION_MS, Ask, Bench


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are soon reached."""
    monkeypatch.setattr(expected, "MOST_IN_A_GROUP", 3)
    monkeypatch.setattr(expected, "MOST_IN_NEW_GROUPS", 5)


def first_contact(bench: Bench, group: str) -> str:
    """The code that a newcomer to any group of the bench's manager is answered with."""
    request = JoinRequest(
        member_id="",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocol_type="test",
        protocols=(Protocol("range", encode_opaque({})),),
    )
    turn = bench.coordinator.handle(group, request, Ask(), bench.instant)
    return str(turn.answers[0][1].code)  # type: ignore[union-attr]


def test_a_group_waits_for_so_many_newcomers_and_no_more() -> None:
    """The others are told to come again, which they may as soon as one of them has joined."""
    bench = Bench()
    ids = [bench.announced_id() for _ in range(3)]
    refused = bench.join(announced=True)
    assert refused.error == "THROTTLING_QUOTA_EXCEEDED"
    assert "group g" in refused.answer.message
    assert list(bench.group.outstanding) == ids
    assert bench.join(ids[0]).waits
    assert bench.announced_id()


def test_there_is_room_again_when_ids_are_given_back_or_forgotten() -> None:
    """Nobody is shut out for longer than a session timeout."""
    bench = Bench()
    ids = [bench.announced_id() for _ in range(3)]
    bench.leave((ids[0], None))
    bench.announced_id()
    assert bench.join(announced=True).error == "THROTTLING_QUOTA_EXCEEDED"
    bench.pass_time(SESSION_MS)
    assert bench.announced_id()


def test_members_of_a_crowded_group_and_static_ones_are_not_concerned() -> None:
    """Only who has no id yet and needs one is put off."""
    bench = Bench()
    [member] = bench.stable(None)
    for _ in range(3):
        bench.announced_id()
    assert bench.heartbeat(member).error == "NONE"
    assert bench.join(member).waits
    assert bench.join(instance_id="s").waits
    assert bench.join().waits


def test_groups_that_do_not_exist_wait_for_so_many_newcomers_together() -> None:
    """Each takes memory, and its name is anybody's choice; groups that exist are not concerned."""
    bench = Bench()
    bench.stable(None)
    assert [first_contact(bench, f"new-{n}") for n in range(5)] == ["MEMBER_ID_REQUIRED"] * 5
    assert first_contact(bench, "new-5") == "THROTTLING_QUOTA_EXCEEDED"
    assert first_contact(bench, "new-0") == "THROTTLING_QUOTA_EXCEEDED"
    assert bench.coordinator.group("new-5") is None
    assert bench.announced_id()


@pytest.mark.parametrize("way", ["time", "eviction", "joining"])
def test_new_groups_are_counted_as_they_come_and_go(way: str) -> None:
    """One that was forgotten, that went to another manager, or that exists now makes room."""
    bench = Bench("new-0")
    ids = [bench.announced_id() for _ in range(3)]
    for _ in range(2):
        first_contact(bench, "new-1")
    assert first_contact(bench, "new-2") == "THROTTLING_QUOTA_EXCEEDED"
    if way == "time":
        bench.pass_time(SESSION_MS)
    elif way == "eviction":
        bench.coordinator.evict("new-0")
    else:
        bench.join(ids[0])
    room = 5 if way == "time" else 3
    told = [first_contact(bench, f"next-{n}") for n in range(room + 1)]
    assert told == ["MEMBER_ID_REQUIRED"] * room + ["THROTTLING_QUOTA_EXCEEDED"]
