"""Workers of a former version, which would begin a transferred task anew under its new names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.core.commands import GetTaskStatus
from protocol.states import Target
from tests.unit.manager.core.tasks.transfer_pair import Pair

if TYPE_CHECKING:
    from tests.unit.manager.core.bench import Bench


def moved() -> Pair:
    """The task has gone to the second group, whose worker is of this version."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.carry()
    return pair


def offered(bench: Bench, member_id: str, **metadata: object) -> set[str]:
    """What the leader, the only member, is to place."""
    ask = bench.join(member_id, kind="sparkherd", metadata=metadata)
    bench.pass_time()
    return {each.task for each in ask.answer.tasks}


def test_a_transferred_task_is_not_offered_beside_a_worker_of_a_former_version() -> None:
    """The leader decides about all that it is offered; its own tasks the group has as ever."""
    pair = moved()
    assert offered(pair.b, pair.getter, homes=True) == {"other", "t"}
    assert offered(pair.b, pair.getter, homes=False) == {"other"}
    cause = pair.b.ask(GetTaskStatus(task="t")).answer.cause
    assert "earlier version" in str(cause)


@pytest.mark.parametrize("knows", [False, True])
def test_a_transferred_task_is_granted_to_those_who_know_of_homes(*, knows: bool) -> None:
    """Whatever it was assigned; it would find no checkpoint under the new names, and write all rows again."""
    pair = moved()
    pair.b.join(pair.getter, kind="sparkherd", metadata={"homes": knows, "x": 1})
    pair.b.deal([pair.getter], {"other": pair.getter, "t": pair.getter})
    answer = pair.b.claim(pair.getter, "t").answer
    assert [each.task for each in answer.granted] == (["t"] if knows else [])
    assert [each.error.name for each in answer.refused] == ([] if knows else ["NOT_ASSIGNED"])


def test_a_later_task_of_the_name_has_a_home_too() -> None:
    """A worker of a former version in the first group would write under the names of the one that left."""
    pair = moved()
    pair.a.create("t", target=Target.RUNNING)
    assert offered(pair.a, pair.giver, homes=False) == set()
    assert offered(pair.a, pair.giver, homes=True) == {"t"}


@pytest.mark.parametrize(("before", "after"), [(False, True), (False, False), (True, True)])
def test_a_static_worker_that_was_upgraded_is_dealt_transferred_tasks(*, before: bool, after: bool) -> None:
    """It slips into its old place; else nobody would run them until something happens."""
    pair = moved()
    bench = pair.b
    bench.leave((pair.getter, None))
    bench.pass_time(1000)
    first = bench.join(instance_id="s", kind="sparkherd", metadata={"homes": before})
    bench.pass_time()
    member_id = str(first.answer.member_id)
    bench.deal([member_id], {"other": member_id} | ({"t": member_id} if before else {}))
    assert bench.join(instance_id="s", kind="sparkherd", metadata={"homes": after}).error == "NONE"
    bench.pass_time(1000)
    assert bench.state == ("PreparingRebalance" if after and not before else "Stable")
