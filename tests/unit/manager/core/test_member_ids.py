from __future__ import annotations

import pytest

from manager.core import member_ids, new_group_ids
from manager.core.commands import CreateTask, DeleteGroup, DeleteTask
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import JoinRequest, Protocol
from protocol.states import Target
from tests.unit.manager.core.bench import SESSION_MS, Ask, Bench, definition


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are soon reached."""
    monkeypatch.setattr(member_ids, "MOST_IN_A_GROUP", 3)
    monkeypatch.setattr(new_group_ids, "MOST_IN_NEW_GROUPS", 5)


def join(bench: Bench, group: str, member_id: str = "") -> Failure | None:
    """How a join in any group of the bench's manager is refused; None if it waits, or was served."""
    request = JoinRequest(
        member_id=member_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocol_type="test",
        protocols=(Protocol("range", encode_opaque({})),),
    )
    turn = bench.coordinator.handle(group, request, Ask(), bench.instant)
    refusals = [outcome for _, outcome in turn.answers if isinstance(outcome, Failure)]
    return refusals[0] if refusals else None


def hand_out(bench: Bench, group: str) -> str:
    """The id that a newcomer to any group of the bench's manager is told to join with."""
    refusal = join(bench, group)
    assert refusal is not None
    return str(refusal.fields["member_id"])


def test_a_group_expects_so_many_newcomers_and_forgets_the_first_of_more(bench: Bench) -> None:
    """Nobody is turned away for others who ask and never join; who is forgotten asks for another id."""
    ids = [bench.announced_id() for _ in range(4)]
    assert list(bench.group.outstanding) == ids[1:]
    assert bench.join(ids[0]).error == "UNKNOWN_MEMBER_ID"
    assert bench.join(ids[1]).waits
    assert [key for key in ids if member_ids.key(key) in bench.group.timers] == ids[2:]


def test_what_is_expected_of_joins_that_were_withdrawn_counts_as_well() -> None:
    """An id comes from a first contact or from a join whose connection closed; one bound is for both."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    withdrawn = []
    for _ in range(5):
        parked = bench.join()
        withdrawn += list(bench.group.members)
        bench.disconnect(parked)
    announced = bench.announced_id()
    assert list(bench.group.outstanding) == [*withdrawn[3:], announced]


def test_members_of_a_crowded_group_and_static_ones_are_not_concerned(bench: Bench, member: str) -> None:
    """Only ids that wait to be joined with are forgotten."""
    for _ in range(5):
        bench.announced_id()
    assert bench.heartbeat(member).error == "NONE"
    assert bench.join(member).waits
    assert bench.join(instance_id="s").waits
    assert bench.join().waits


def test_whoever_fills_groups_that_do_not_exist_shuts_nobody_out(bench: Bench) -> None:
    """Names are anybody's choice, with a token for `a*`, say. The oldest ids go, whichever group has them."""
    for number in range(7):
        hand_out(bench, f"a{number}")
    mine = hand_out(bench, "mine")
    assert bench.coordinator.names() == ("a3", "a4", "a5", "a6", "mine")
    assert join(bench, "mine", mine) is None


def test_an_id_is_forgotten_only_for_as_many_that_came_after_it(bench: Bench) -> None:
    """Who asks for the group that asked last, again and again, is no quicker in it."""
    mine = hand_out(bench, "mine")
    for _ in range(9):
        hand_out(bench, "a")
    assert join(bench, "mine", mine) is None


def test_ids_of_a_group_that_is_made_and_unmade_are_not_newer_for_it() -> None:
    """Else two requests with a token for `a` would have every newcomer's id of other groups forgotten."""
    bench = Bench("a")
    making = CreateTask(task="t", definition=definition(), target=Target.RUNNING)
    bench.ask(making)
    old = [bench.announced_id() for _ in range(3)]
    mine = [(group, hand_out(bench, group)) for group in ("mine", "theirs", "theirs")]
    for _ in range(3):
        bench.ask(DeleteTask(task="t"))
        assert bench.group.is_new
        assert list(bench.group.outstanding) == old[1:]
        bench.ask(making)
    assert [join(bench, group, member_id) for group, member_id in mine] == [None] * 3


def test_members_and_newcomers_of_groups_that_exist_are_not_concerned(bench: Bench, member: str) -> None:
    """Only who may act on a group has ids of it forgotten."""
    newcomer = bench.announced_id()
    for number in range(20):
        hand_out(bench, f"a{number}")
    assert bench.heartbeat(member).error == "NONE"
    assert bench.join(newcomer).waits


@pytest.mark.parametrize("way", ["time", "eviction", "restoring", "joining", "a task", "deletion"])
def test_new_groups_are_counted_as_they_come_and_go(way: str) -> None:
    """One that was forgotten, that went to another manager, or that exists now makes room."""
    bench = Bench("new-0")
    for _ in range(2):
        hand_out(bench, "new-1")
    ids = [bench.announced_id() for _ in range(3)]
    if way == "time":
        bench.pass_time(SESSION_MS)
    elif way == "eviction":
        bench.coordinator.evict("new-0")
    elif way == "restoring":
        bench.reload(is_evicted=False)
    elif way == "joining":
        bench.join(ids[0])
    else:
        bench.ask(CreateTask(task="t", definition=definition(), target=Target.RUNNING))
        if way == "deletion":
            bench.ask(DeleteGroup())
            bench.coordinator.bury("new-0")
    room = 5 if way == "time" else 3
    names = [f"next-{number}" for number in range(room)]
    for name in names:
        hand_out(bench, name)
    present = {name for name in bench.coordinator.names() if name != "new-0"}
    assert present == {*names} | ({"new-1"} if room == 3 else set())
    hand_out(bench, "one-more")
    hand_out(bench, "and-another")
    assert ("new-1" in bench.coordinator.names(), "next-2" in bench.coordinator.names()) == (False, True)


def test_a_group_that_is_none_any_more_is_counted_again() -> None:
    """What is left of it when its time is over are ids that were handed out."""
    bench = Bench(group_retention_ms=SESSION_MS // 2)
    [member] = bench.stable(None)
    bench.leave((member, None))
    bench.pass_time(SESSION_MS // 2 - 1)
    kept = [bench.announced_id() for _ in range(3)]
    bench.pass_time(1)
    assert bench.group.is_new
    for number in range(4):
        hand_out(bench, f"a{number}")
    assert list(bench.group.outstanding) == kept[2:]
