"""Errands in a membership: what heartbeats say of them is passed on, once, each kind for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errands import ErrandKind
from protocol.errors import ErrorCode
from protocol.messages.membership import HeartbeatRequest, HeartbeatResponse
from worker.membership.events import Errand, Wait
from worker.membership.states import MemberState

if TYPE_CHECKING:
    from tests.unit.worker.membership.bench import Bench


def beat(bench: Bench, **answer: str) -> list[str | None]:
    """A heartbeat is answered so; which errands are to be done now. The next one is under way then."""
    bench.answer(HeartbeatResponse(tasks_revision=0, **answer))
    found = told(bench)
    if bench.wants(Wait):
        bench.wait()
    return found


def told(bench: Bench) -> list[str | None]:
    return [effect.errand for effect in bench.effects if isinstance(effect, Errand)]


def test_a_check_is_told_once_and_then_known(bench: Bench) -> None:
    """The next heartbeat says so, and may be held again; its end is told, too."""
    bench.to(MemberState.STABLE)
    assert beat(bench, check="c1") == ["c1"]
    assert bench.sent(HeartbeatRequest).check == "c1"
    assert beat(bench, check="c1") == []
    assert beat(bench, check="c2") == ["c2"]
    assert beat(bench) == [None]
    assert bench.sent(HeartbeatRequest).check is None
    assert beat(bench) == []


def test_who_is_a_member_no_more_does_it_no_more(bench: Bench) -> None:
    """The manager has told whoever waited for it."""
    bench.to(MemberState.STABLE)
    beat(bench, check="c1")
    bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    assert told(bench) == [None]


def test_each_kind_is_told_for_itself(bench: Bench) -> None:
    """What is done of one goes on when something is told of the other."""
    bench.to(MemberState.STABLE)
    assert beat(bench, check="c1") == ["c1"]
    assert beat(bench, check="c1", quarantine="q1") == ["q1"]
    assert [effect.kind for effect in bench.effects if isinstance(effect, Errand)] == []
    assert bench.sent(HeartbeatRequest).told == ("c1", "q1")
    bench.answer(HeartbeatResponse(tasks_revision=0, quarantine="q1"))
    [ended] = [effect for effect in bench.effects if isinstance(effect, Errand)]
    assert (ended.kind, ended.errand) == (ErrandKind.CHECK, None)
