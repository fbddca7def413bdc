from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.commands import DrainMember, RemoveMember, StartRebalance
from tests.unit.manager.core.bench import SESSION_MS, Bench

if TYPE_CHECKING:
    from collections.abc import Callable


def _join_phase() -> tuple[Bench, str]:
    """Three workers, Stable until the first rejoins with something new to say; and the second of them."""
    bench = Bench(group_max_size=3)
    first, second, third = bench.herd(3, "t", "u")
    bench.pass_time(1)
    bench.heartbeat(third)
    bench.join(first, kind="sparkherd", metadata={"owned": {"t": 1}, "new": True})
    assert bench.state == "PreparingRebalance"
    return bench, second


def _is_refused_for_want_of_room(bench: Bench, member: str) -> None:
    bench.join(kind="sparkherd")
    bench.join(kind="sparkherd")
    assert bench.join(member, kind="sparkherd").error == "GROUP_MAX_SIZE_REACHED"


CHANGES: dict[str, Callable[[Bench, str], object]] = {
    "a member leaves": lambda bench, member: bench.leave((member, None)),
    "a member is removed": lambda bench, member: bench.ask(RemoveMember(member_id=member)),
    "a member falls silent": lambda bench, _: bench.pass_time(SESSION_MS - 1),
    "a member is refused for want of room": _is_refused_for_want_of_room,
    "a member is drained": lambda bench, member: bench.ask(DrainMember(member_id=member, draining=True)),
    "a task comes": lambda bench, _: bench.create("v"),
    "an admin asks": lambda bench, _: bench.ask(StartRebalance()),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_rebalance_that_is_needed_outlasts_the_join_that_began_it(what: str) -> None:
    """The manager dies, and the joiner; nobody sends that join again, yet the group must not sit still."""
    bench, member = _join_phase()
    CHANGES[what](bench, member)
    bench.crash()
    assert bench.state == "PreparingRebalance"


def test_a_join_phase_that_only_a_join_needs_is_forgotten() -> None:
    """The join is sent again, or else its sender is gone."""
    bench, _ = _join_phase()
    bench.crash()
    assert bench.state == "Stable"


def test_a_group_whose_members_left_before_their_first_generation_keeps_its_type() -> None:
    """What an Empty group is shown as does not change with a crash."""
    bench = Bench(initial_rebalance_delay_ms=1000)
    member = bench.announced_id(kind="sparkherd")
    bench.join(member, kind="sparkherd")
    bench.leave((member, None))
    bench.pass_time(1000)
    bench.crash()
    assert (bench.state, bench.group.generation, bench.group.protocol_type) == ("Empty", 1, "sparkherd")
