"""The pace at which the leader has tasks move from member to member (protocol §5, Pace)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET, structs
from structlog.testing import capture_logs

from protocol.messages.base import decode_opaque, encode_opaque
from protocol.worker_metadata import read_metadata
from worker.membership.leader import Leader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assignors.base import Assignment
    from protocol.messages.membership import JoinedMember, JoinResponse

from tests.unit.worker.membership.leader_bench import OWNED, Scripted, joined, read


def pacing(
    answer: JoinResponse, *others: str, starting: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> JoinResponse:
    """The same, of members that ask for more themselves, all but `others`, and still start `starting`."""

    def told(member: JoinedMember) -> JoinedMember:
        metadata = structs.replace(
            read_metadata(member.metadata),
            paces=member.member_id not in others,
            starting=starting.get(member.member_id, ()),
        )
        return structs.replace(member, metadata=encode_opaque(metadata))

    return structs.replace(answer, members=tuple(map(told, answer.members)))


async def test_a_member_is_given_a_few_at_once_and_told_of_more() -> None:
    """The others stay where they run; nobody else is told so."""
    assignor = Scripted(lambda: {"w1": ["d"], "w2": ["a", "b", "c"]})
    lead = Leader([assignor], session_timeout_ms=10_000, move_at_once=1)
    told = await lead.assign(pacing(joined()))
    assert {each.member_id: decode_opaque(each.assignment) for each in told} == {
        "w1": {"tasks": ["d", "b"]},
        "w2": {"tasks": ["a", "c"], "more": 1},
    }


async def test_what_a_member_still_starts_takes_its_part_of_what_it_is_given() -> None:
    """By its own word; others move to it when that is started."""
    wanted = {"w1": ["d"], "w2": ["a", "b", "c"]}
    lead, _ = counting(wanted)
    await lead.assign(pacing(joined()))
    half = pacing(joined({"w1": {"b": 1, "d": 2}, "w2": {"c": 1, "a": 2}}), starting={"w2": ("a",)})
    assert read(await lead.assign(half)) == {"w1": ["d", "b"], "w2": ["a", "c"]}


async def test_what_is_on_its_way_is_not_given_back() -> None:
    """Its former owner has it still, and lets go of it: the next one moves besides."""
    lead, _ = counting({"w1": ["d"], "w2": ["a", "b", "c"]})
    await lead.assign(pacing(joined()))
    assert read(await lead.assign(pacing(joined()))) == {"w1": ["d"], "w2": ["a", "b", "c"]}


async def test_what_a_returned_worker_is_to_have_back_runs_nowhere() -> None:
    """It has to be started: of what others run it is given less at first."""
    wanted: Assignment = {"w1": [], "w2": ["a", "b", "d"]}
    lead = Leader([Scripted(lambda: wanted)], session_timeout_ms=10_000, move_at_once=2)
    answer = joined({"w1": {"a": 1, "b": 1}, "w2": {}}, tasks="abd")
    back = [
        structs.replace(task, returns_to="w2" if task.task == "d" else UNSET) for task in answer.tasks or ()
    ]
    sent = await lead.assign(pacing(structs.replace(answer, tasks=tuple(back))))
    assert read(sent) == {"w1": ["b"], "w2": ["a", "d"]}


def counting(*answers: Assignment) -> tuple[Leader, list[Assignment]]:
    """A leader that moves one task at once, and the answers that its assignor has not given yet."""
    left = list(answers)
    return Leader([Scripted(lambda: left.pop(0))], session_timeout_ms=10_000, move_at_once=1), left


async def test_the_rest_moves_as_it_was_decided() -> None:
    """Whatever the assignor would say now; when it has moved, that is asked again."""
    wanted = {"w1": ["d"], "w2": ["a", "b", "c"]}
    lead, left = counting(wanted, {"w1": ["a", "b", "c", "d"]})
    await lead.assign(pacing(joined()))
    half = {"w1": {"b": 1, "d": 2}, "w2": {"c": 1, "a": 2}}
    assert read(await lead.assign(pacing(joined(half)))) == wanted
    assert len(left) == 1
    await lead.assign(pacing(joined({"w1": {"d": 2}, "w2": {"c": 1, "a": 2, "b": 3}})))
    assert left == []


@pytest.mark.parametrize(
    "changed",
    [
        joined(tasks="abcde"),
        joined({**OWNED, "w3": {}}),
        joined(limits={"w1": 3}),
    ],
    ids=["a task came", "a member came", "a limit"],
)
async def test_a_group_that_has_changed_is_decided_about_anew(changed: JoinResponse) -> None:
    """The rest of what was decided may not be right any more."""
    lead, left = counting({"w1": ["d"], "w2": ["a", "b", "c"]}, {"w1": ["a", "b", "d"], "w2": ["c"]})
    await lead.assign(pacing(joined()))
    await lead.assign(pacing(changed))
    assert left == []


async def test_what_the_manager_found_wrong_is_not_gone_on_with() -> None:
    """The last assignment stands in, made valid, as for any fault; the assignor is asked next time."""
    lead, left = counting({"w1": ["d"], "w2": ["a", "b", "c"]}, {"w1": ["a", "b", "d"], "w2": ["c"]})
    await lead.assign(pacing(joined()))
    assert read(await lead.assign(pacing(joined()), "no"))["w2"] == ["c"]
    assert len(left) == 1
    await lead.assign(pacing(joined()))
    assert left == []


async def test_all_move_at_once_where_a_member_does_not_ask_for_more() -> None:
    """It would never be given the rest, or stop all it has to ask for it."""
    lead = Leader([Scripted(lambda: {"w2": list("abcd")})], session_timeout_ms=10_000, move_at_once=1)
    assert read(await lead.assign(pacing(joined(), "w1"))) == {"w1": [], "w2": list("abcd")}


async def test_a_bug_in_the_pace_lets_all_move_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moves themselves are right."""

    def fail(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("worker.membership.leader.paced", fail)
    lead = Leader([Scripted(lambda: {"w2": list("abcd")})], session_timeout_ms=10_000, move_at_once=1)
    with capture_logs() as logs:
        assert read(await lead.assign(pacing(joined()))) == {"w1": [], "w2": list("abcd")}
    assert [line["event"] for line in logs] == ["bug: tasks move without a pace"]
