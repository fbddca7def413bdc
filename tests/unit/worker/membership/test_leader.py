from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET, structs
from structlog.testing import capture_logs

from assignors.sticky import StickyAssignor
from assignors.unassigned import NO_ROOM, SUSPECTS_FULL
from protocol.errors import StartupError
from protocol.messages.base import decode_opaque
from protocol.messages.membership import JoinedMember
from protocol.messages.tasks import OfferedTask
from tests.fakes.clock import FakeClock
from worker.membership import left_out
from worker.membership.leader import Leader, load_assignors

if TYPE_CHECKING:
    from collections.abc import Callable


from tests.unit.worker.membership.leader_bench import Scripted, joined, leader, read, tasks_of


async def test_the_assignor_s_word_is_sent_to_every_member() -> None:
    """Members that are given nothing are told so."""
    lead, _ = leader(lambda: {"w1": ["b", "a", "c", "d"]})
    assert read(await lead.assign(joined())) == {"w1": ["b", "a", "c", "d"], "w2": []}


async def test_the_assignor_is_told_who_owns_what() -> None:
    """From the members' own metadata."""
    lead, assignor = leader(dict)
    await lead.assign(joined())
    assert [(each.member_id, each.owned) for each in assignor.members] == [
        ("w1", frozenset("ab")),
        ("w2", frozenset("c")),
    ]
    assert [task.name for task in assignor.tasks] == ["a", "b", "c", "d"]


async def test_the_assignor_is_told_the_token_of_each_task() -> None:
    """By which it knows what has moved last; a task that nobody has has none."""
    lead, assignor = leader(dict)
    await lead.assign(joined({"w1": {"a": 4}, "w2": {"a": 5, "b": 9}}, tasks="abc"))
    assert [(task.name, task.token) for task in assignor.tasks] == [("a", 5), ("b", 9), ("c", 0)]


async def test_the_assignor_is_told_how_far_tasks_are_behind() -> None:
    """As far as the manager knows."""
    lead, assignor = leader(dict)
    answer = joined(tasks="ab")
    a, b = answer.tasks or ()
    await lead.assign(structs.replace(answer, tasks=(structs.replace(a, lag=7), b)))
    assert [task.lag for task in assignor.tasks] == [7, None]


async def test_of_two_who_say_they_own_a_task_the_higher_token_counts() -> None:
    """The other one is a zombie and does not know it yet."""
    lead, assignor = leader(dict)
    await lead.assign(joined({"w1": {"a": 4}, "w2": {"a": 5}}))
    assert [each.owned for each in assignor.members] == [frozenset(), {"a"}]


async def test_who_is_drained_is_given_nothing() -> None:
    """The assignor does not even hear of it; it is told so all the same."""
    lead, assignor = leader(lambda: {"w1": ["a", "b", "c", "d"]})
    answer = joined()
    drained = msgspec.structs.replace(answer.members[1], draining=True)
    answer = msgspec.structs.replace(answer, members=(answer.members[0], drained))
    assert read(await lead.assign(answer)) == {"w1": ["a", "b", "c", "d"], "w2": []}
    assert [each.member_id for each in assignor.members] == ["w1"]


async def test_when_everybody_is_drained_nobody_is_given_anything() -> None:
    """The manager is told why."""
    lead, _ = leader(dict)
    answer = joined()
    drained = tuple(msgspec.structs.replace(member, draining=True) for member in answer.members)
    sent = await lead.assign(msgspec.structs.replace(answer, members=drained))
    assert read(sent) == {"w1": [], "w2": []}
    assert decode_opaque(sent[0].assignment)["left_out"]["a"] == "every worker of the group is being drained"


async def test_what_a_lost_worker_owned_counts_as_its_own_when_it_is_back() -> None:
    """So that an assignor that moves little gives it back."""
    lead, assignor = leader(dict)
    answer = joined({"w1": {"a": 1}, "w2": {}})
    returned = tuple(
        msgspec.structs.replace(task, returns_to="w2") if task.task == "d" else task
        for task in answer.tasks or ()
    )
    await lead.assign(msgspec.structs.replace(answer, tasks=returned))
    assert [each.owned for each in assignor.members] == [{"a"}, {"d"}]


async def test_the_assignor_is_told_the_last_assignment() -> None:
    """What was assigned and not claimed yet need not move either."""
    lead, assignor = leader(lambda: {"w2": ["d"]})
    await lead.assign(joined())
    await lead.assign(joined())
    assert assignor.current == {"w2": ("d",)}


async def test_a_member_whose_metadata_cannot_be_read_is_a_member() -> None:
    """It owns nothing that anybody could tell."""
    lead, assignor = leader(lambda: {"w3": ["a"]})
    response = msgspec.structs.replace(
        joined(), members=(JoinedMember("w3", None, msgspec.Raw(b'{"owned": [1]}')),)
    )
    assert read(await lead.assign(response)) == {"w3": ["a"]}
    assert assignor.members[0].owned == frozenset()


async def test_a_group_without_tasks_is_assigned_nothing() -> None:
    """A manager that offers none need not say so."""
    lead, _ = leader(dict)
    response = msgspec.structs.replace(joined(), tasks=msgspec.UNSET)
    assert read(await lead.assign(response)) == {"w1": [], "w2": []}


def raises() -> Any:
    """A bug in a plug-in."""
    raise LookupError("no such thing")


def leaves() -> Any:
    """A plug-in that was a script once."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (raises, "LookupError: no such thing"),
        (leaves, "RuntimeError: it raised SystemExit: 3"),
        (lambda: {"w9": ["a"]}, "w9 is not in the group"),
        (lambda: {5: ["a"]}, "5 is not in the group"),
        (lambda: {"w1": ["z"]}, "w1 is given z"),
        (lambda: {"w1": ["a", "a"]}, "w1 is given a, which is given away already"),
        (lambda: {"w1": ["a"], "w2": ["a"]}, "w2 is given a, which is given away already"),
        (lambda: {"w1": [["a"]]}, "w1"),
        (lambda: {"w1": "ab"}, "no list"),
        (lambda: None, "no mapping"),
    ],
)
async def test_a_wrong_assignor_is_overruled(answer: Callable[[], Any], why: str) -> None:
    """The log says why; every task has its place all the same, and what runs stays where it runs."""
    lead, _ = leader(answer)
    with capture_logs() as logs:
        assignments = await lead.assign(joined())
    assert tasks_of(assignments) == ["a", "b", "c", "d"]
    assert set(read(assignments)["w1"]) >= {"a", "b"}
    assert set(read(assignments)["w2"]) >= {"c"}
    told = [entry for entry in logs if "stands in" in entry["event"]]
    assert [why in entry["why"] for entry in told] == [True]


async def test_an_assignor_that_loops_for_ever_is_overruled() -> None:
    """After ten seconds, of which this test spends none; half a session if that is shorter."""
    for session_timeout_ms, limit_s in ((30_000, 10), (4_000, 2)):
        gate, clock = threading.Event(), FakeClock()
        lead = Leader([Scripted(gate.wait)], session_timeout_ms=session_timeout_ms, clock=clock)
        deciding = asyncio.ensure_future(lead.assign(joined()))
        await clock.advance(limit_s - 0.1)
        assert not deciding.done()
        await clock.advance(0.1)
        assert tasks_of(await deciding) == ["a", "b", "c", "d"]
        gate.set()


async def test_a_member_that_is_left_out_is_given_nothing() -> None:
    """That is no cheat, but what comes of it is told: its tasks are nobody's."""
    lead, _ = leader(lambda: {"w1": ["a", "b"]})
    sent = {each.member_id: decode_opaque(each.assignment) for each in await lead.assign(joined())}
    assert sent["w2"] == {"tasks": []}
    assert sent["w1"]["left_out"] == dict.fromkeys("cd", "the assignor left it out")


async def test_an_assignor_cannot_change_what_it_is_told() -> None:
    """It might otherwise change what stands in for it."""

    def meddle() -> Any:
        assignor.members[0].labels["gpu"] = "yes"  # type: ignore[index]  # a plug-in need not be typed

    lead, assignor = leader(meddle)
    with capture_logs() as logs:
        assert tasks_of(await lead.assign(joined())) == ["a", "b", "c", "d"]
    assert "does not support item assignment" in logs[-1]["why"]


async def test_the_last_good_assignment_is_what_stands_in() -> None:
    """Made to fit: w2 is gone, e is new, and nothing that could stay has moved."""
    lead, assignor = leader(lambda: {"w1": ["a"], "w2": ["b"], "w3": ["c", "d"]})
    await lead.assign(joined({"w1": {}, "w2": {}, "w3": {}}))
    assignor.answer = raises
    assignments = read(await lead.assign(joined({"w1": {}, "w3": {}}, tasks="abcde")))
    assert set(assignments["w1"]) >= {"a"}
    assert set(assignments["w3"]) >= {"c", "d"}
    assert sorted(assignments["w1"] + assignments["w3"]) == list("abcde")


async def test_what_the_manager_refused_is_not_decided_by_the_assignor_again() -> None:
    """INVALID_ASSIGNMENT: the stand-in is sent."""
    calls: list[int] = []

    def answer() -> Any:
        calls.append(1)
        return {"w1": ["a"]}

    lead, _ = leader(answer)
    await lead.assign(joined())
    assert tasks_of(await lead.assign(joined(), "'a' is given twice")) == ["a", "b", "c", "d"]
    assert calls == [1]


async def test_the_group_s_choice_among_the_assignors_counts() -> None:
    """Each worker may bring several; the members vote."""
    scripted = Scripted(raises)
    lead = Leader([scripted, StickyAssignor()], session_timeout_ms=10_000)
    assert tasks_of(await lead.assign(joined(protocol="sticky"))) == ["a", "b", "c", "d"]
    assert scripted.members == ()


@pytest.mark.parametrize("broken", ["labels", "formats", "owned", "member_id"])
@pytest.mark.parametrize("answer", [dict, raises])
async def test_what_an_assignor_does_to_what_it_is_given_is_its_own_affair(
    broken: str, answer: Callable[[], Any]
) -> None:
    """Whoever stands in for it, and whoever says why tasks are nobody's, goes by the members as they are."""

    def meddle() -> Any:
        for member in assignor.members:
            object.__setattr__(member, broken, None)
        return answer()

    lead, assignor = leader(meddle)
    sent = await lead.assign(joined())
    assert tasks_of(sent) == ([] if answer is dict else ["a", "b", "c", "d"])
    left_out = decode_opaque(sent[0].assignment).get("left_out", {})
    assert left_out == (dict.fromkeys("abcd", "the assignor left it out") if answer is dict else {})


async def test_rules_that_raise_end_neither_leader_nor_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody keeps what it owns, and why the rest is nobody's is not told."""

    def broken(*_: object) -> Any:
        raise LookupError("no such thing")

    monkeypatch.setattr("assignors.eligibility.Eligibility._having", broken)
    monkeypatch.setattr("assignors.eligibility.Eligibility.groups", broken)
    lead = Leader([StickyAssignor()], session_timeout_ms=10_000)
    suspect = OfferedTask("d", 1.0, None, {}, None, suspect=True)
    told = joined(protocol="sticky")
    with capture_logs() as logs:
        sent = await lead.assign(structs.replace(told, tasks=(*told.tasks[:3], suspect)))  # type: ignore[index]
    assert read(sent) == {"w1": ["a", "b"], "w2": ["c"]}
    assert "left_out" not in decode_opaque(sent[0].assignment)
    assert sum("cause_id" in entry for entry in logs) == 3


async def test_an_error_whose_text_cannot_be_made_is_told_all_the_same() -> None:
    """The text of an assignor's error is made by its code, too."""

    class UntoldError(Exception):
        def __str__(self) -> str:
            raise ValueError("none")

    def fail() -> Any:
        raise UntoldError

    lead, _ = leader(fail)
    with capture_logs() as logs:
        assert tasks_of(await lead.assign(joined())) == ["a", "b", "c", "d"]
    assert [entry["why"] for entry in logs if "stands in" in entry["event"]] == [
        "UntoldError: it cannot be shown"
    ]


async def test_why_tasks_are_nobody_s_is_told_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager takes a sync of some size only; the log is for people."""
    monkeypatch.setattr(left_out, "MOST_BYTES", 60)
    monkeypatch.setattr(left_out, "MOST_LOGGED", 3)
    lead, _ = leader(dict)
    with capture_logs() as logs:
        sent = await lead.assign(joined())
    assert decode_opaque(sent[0].assignment)["left_out"] == dict.fromkeys("ab", "the assignor left it out")
    assert [entry.get("task", entry.get("tasks")) for entry in logs] == ["a", "b", "c", 1]


async def test_tasks_that_nobody_is_given_are_told_with_the_reason() -> None:
    """An assignor may leave a task out; nobody should have to guess."""
    lead, _ = leader(lambda: {"w1": ["a", "b", "c"]})
    with capture_logs() as logs:
        sent = await lead.assign(joined())
    assert [(entry["task"], entry["why"]) for entry in logs] == [("d", "the assignor left it out")]
    assert decode_opaque(sent[0].assignment)["left_out"] == {"d": "the assignor left it out"}
    assert "left_out" not in decode_opaque(sent[1].assignment)


@pytest.mark.parametrize("answer", [lambda: {"w1": list("abcd")}, raises])
async def test_no_worker_is_given_more_than_its_max_tasks(answer: Callable[[], Any]) -> None:
    """Whatever the assignor says, and if the last good assignment stands in for it; the rest says why."""
    lead, _ = leader(answer)
    with capture_logs():
        sent = await lead.assign(joined(limits={"w1": 2, "w2": 1}))
    assert read(sent) == {"w1": ["a", "b"], "w2": ["c"]}
    assert decode_opaque(sent[0].assignment)["left_out"] == {"d": NO_ROOM}


async def test_suspects_keep_within_the_limit_of_their_worker() -> None:
    """The first of them by name, the others later."""
    lead, _ = leader(lambda: {"w2": ["c"]})
    answer = joined(tasks="acd", limits={"w1": 1})
    offered = [structs.replace(task, suspect=task.task in "ad" or UNSET) for task in answer.tasks or ()]
    with capture_logs():
        sent = await lead.assign(structs.replace(answer, tasks=tuple(offered)))
    assert read(sent) == {"w1": ["a"], "w2": ["c"]}
    assert decode_opaque(sent[0].assignment)["left_out"] == {"d": SUSPECTS_FULL}


def test_assignors_are_loaded_in_order() -> None:
    """By name or as module:Class."""
    names = [each.name for each in load_assignors(["roundrobin", "assignors.sticky:StickyAssignor"])]
    assert names == ["roundrobin", "sticky"]


@pytest.mark.parametrize(
    ("specs", "why"),
    [
        (["no-such"], "no-such"),
        (["nowhere:Class"], "nowhere"),
        (["sticky", "assignors.sticky:StickyAssignor"], "goes by the name 'sticky'"),
    ],
)
def test_an_assignor_that_cannot_be_used_keeps_the_worker_from_starting(specs: list[str], why: str) -> None:
    """One line that names the setting."""
    with pytest.raises(StartupError, match=why) as caught:
        load_assignors(specs)
    assert str(caught.value).startswith("--assignor: ")
    assert "\n" not in str(caught.value)


async def test_suspects_get_a_worker_of_their_own_whatever_the_assignor() -> None:
    """It is asked about the others only; why some task is left out is told of both."""
    boss, assignor = leader(lambda: {"w2": ["b", "c"]})
    answer = joined(tasks="abcd")
    offered = [
        structs.replace(task, suspect=True if task.task in "ad" else UNSET) for task in answer.tasks or ()
    ]
    given = await boss.assign(structs.replace(answer, tasks=tuple(offered)))
    assert [task.name for task in assignor.tasks] == ["b", "c"]
    assert [member.member_id for member in assignor.members] == ["w2"]
    assert {each.member_id: decode_opaque(each.assignment)["tasks"] for each in given} == {
        "w1": ["a", "d"],
        "w2": ["b", "c"],
    }
