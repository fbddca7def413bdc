"""What a claim is told of pending tasks, so that the caller can make them ready (protocol §5, Claim)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from manager.core.commands import SetTarget
from protocol.messages.tasks import TaskHome
from protocol.states import Target
from tests.unit.manager.core.tasks.test_probation import suspected
from tests.unit.manager.core.tasks.test_resets import reset, resume, stopped
from tests.unit.manager.core.tasks.transfer_pair import Pair

if TYPE_CHECKING:
    from protocol.messages.ownership import ClaimResponse
    from tests.unit.manager.core.bench import Bench

TASKS = ("t", "u", "v")


def moving(bench: Bench) -> tuple[str, str]:
    """All tasks move from the first member to the second, and none has been let go."""
    bench.create(*TASKS)
    a, b = bench.worker_group(2)
    bench.deal([a, b], dict.fromkeys(TASKS, a))
    bench.claim(a, *TASKS)
    bench.redeal([a, b], dict.fromkeys(TASKS, b))
    return a, b


def told(answer: ClaimResponse) -> list[str]:
    """The pending tasks whose definition there is."""
    return [each.task for each in answer.pending if each.definition is not msgspec.UNSET]


@pytest.mark.parametrize("most", range(4))
def test_of_so_many_pending_tasks_the_definition_is_told(bench: Bench, most: int) -> None:
    """Of the first ones, as the manager has it; all are pending."""
    _, b = moving(bench)
    answer = bench.claim(b, *TASKS, prepare=most).answer
    assert [each.task for each in answer.pending] == list(TASKS)
    assert told(answer) == list(TASKS[:most])
    known = bench.group.tasks.definitions
    assert all(each.definition == known[each.task].definition for each in answer.pending[:most])


def test_the_answer_to_a_claim_that_waited_tells_of_the_next(bench: Bench) -> None:
    """One is granted, so that there is room for another one."""
    a, b = moving(bench)
    waiting = bench.claim(b, *TASKS, wait_ms=3000, prepare=1)
    bench.release(a, t=bench.group.tasks.ownership["t"].token)
    assert [each.task for each in waiting.answer.granted] == ["t"]
    assert told(waiting.answer) == ["u"]


@pytest.mark.parametrize("target", [Target.PAUSED, Target.STOPPED])
def test_what_is_not_to_run_is_not_to_be_prepared(bench: Bench, target: Target) -> None:
    """It takes no room of what is."""
    _, b = moving(bench)
    bench.ask(SetTarget(task="t", target=target))
    assert told(bench.claim(b, "t", "u", prepare=1).answer) == ["u"]


def test_a_suspect_that_waits_for_its_turn_is_not_to_be_prepared() -> None:
    """It may have been its death that was its last owner's."""
    bench, b = suspected("a", "b")
    answer = bench.claim(b, "a", "b", prepare=8).answer
    assert [each.task for each in answer.pending] == ["b"]
    assert told(answer) == []


def test_the_last_reset_is_told_with_the_definition() -> None:
    """It says which checkpoint is the task's."""
    bench, a = stopped()
    reset(bench)
    granted = resume(bench, a)
    newcomer = bench.join(kind="sparkherd")
    bench.join(a, kind="sparkherd", metadata={"owned": {"t": granted.token}, "x": 1})
    b = newcomer.answer.member_id
    bench.deal([a, b], {"t": b})
    (pending,) = bench.claim(b, "t", prepare=1).answer.pending
    assert pending.reset == granted.reset is not None


def test_the_home_of_a_task_from_another_group_is_told_with_the_definition() -> None:
    """It says where its checkpoint is."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.carry()
    bench, first = pair.b, pair.getter
    bench.redeal([first], {"other": first, "t": first})
    [granted] = bench.claim(first, "t").answer.granted
    newcomer = bench.join(kind="sparkherd")
    bench.join(first, kind="sparkherd", metadata={"owned": {"t": granted.token}, "x": 1})
    second = newcomer.answer.member_id
    bench.deal([first, second], {"other": first, "t": second})
    (pending,) = bench.claim(second, "t", prepare=1).answer.pending
    assert pending.home == granted.home == TaskHome("a", "t")
