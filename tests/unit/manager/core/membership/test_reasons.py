from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.commands import ListRebalances, StartRebalance
from protocol.messages.membership import Leaver, LeaveRequest

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench

LONG = "x" * 300


def reasons(bench: Bench) -> list[str]:
    """Of the group's rebalances, newest first."""
    return [line.reason for line in bench.ask(ListRebalances(limit=100)).answer.rebalances]


def history(bench: Bench) -> list[str]:
    """What happened, newest first."""
    return [line.event for line in bench.ask(ListRebalances(limit=1)).answer.history]


def leave(bench: Bench, *leavers: tuple[str, str | None]) -> None:
    """Those members leave, for those reasons."""
    bench.ask(LeaveRequest(members=tuple(Leaver(member, None, why) for member, why in leavers)))


def test_a_joiners_own_words_stand_in_the_history_cut_at_255(bench: Bench) -> None:
    """KIP-800; who it was stands in the history."""
    [first] = bench.stable(None)
    newcomer = bench.join(reason=LONG)
    bench.join(first)
    bench.settle([first, newcomer.answer.member_id])
    assert reasons(bench)[0] == LONG[:255]
    assert f"{newcomer.answer.member_id} joins" in history(bench)


def test_a_rejoiners_own_words_do_too(bench: Bench) -> None:
    """Whatever made it rejoin."""
    [leader] = bench.stable(None)
    bench.join(leader, reason="new assignor")
    bench.settle([leader])
    assert reasons(bench)[0] == "new assignor"
    assert f"leader {leader} rejoins" in history(bench)


def test_without_words_of_its_own_the_history_says_what_the_member_did(bench: Bench) -> None:
    """The reason is optional."""
    [first] = bench.stable(None)
    assert reasons(bench) == [f"{first} joins"]


def test_the_words_of_all_who_left_stand_in_the_history_each_once(bench: Bench) -> None:
    """Not those of an entry that was refused."""
    ids = bench.stable(None, None, None, None)
    leave(bench, (ids[0], "night"), (ids[1], "night"), ("nobody", "no"), (ids[2], None), (ids[3], "rain"))
    assert reasons(bench)[0] == "night; rain"


def test_a_leave_without_words_is_told_too(bench: Bench, member: str) -> None:
    """The reason is optional."""
    leave(bench, (member, None))
    assert reasons(bench)[0] == "members left"


def test_no_words_make_the_rebalances_or_the_history_long(bench: Bench) -> None:
    """Both are bounded, whatever a request brings."""
    ids = bench.stable(None, None)
    bench.ask(StartRebalance(reason="x" * 10_000))
    leave(bench, *((member, "y" * 10_000) for member in ids))
    assert reasons(bench)[0] == "x" * 255
    assert max(len(event) for event in history(bench)) == 512
