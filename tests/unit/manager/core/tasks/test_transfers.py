from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from manager.core.commands import (
    CreateTask,
    DeleteGroup,
    DeleteTask,
    GetTask,
    GetTaskStatus,
    PutTask,
    PutTasks,
    ResetTask,
    RestartTask,
    SetTarget,
)
from manager.core.stored_rows import OwnershipRow
from manager.core.tasks.homes import home_after
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from manager.core.transfer_registry import KEPT
from protocol.messages.ownership import ReportRequest
from protocol.messages.tasks import TaskHome, TaskReset
from protocol.states import Target, TaskState, TransferStep
from tests.unit.manager.core.bench import Bench, definition
from tests.unit.manager.core.tasks.transfer_pair import ID, Pair, stored

if TYPE_CHECKING:
    from manager.core.stored_rows import TransferRow
    from protocol.messages.base import Request


def given() -> Pair:
    """A pair beyond the point of no return, of which the second group does not know yet."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    pair.tell(pair.a)
    assert pair.steps() == (["GIVEN"], ["ARRIVED"])
    return pair


def test_a_task_goes_over_step_by_step() -> None:
    """Each group does its step only when the other one has stored the step before."""
    pair = Pair()
    pair.start()
    assert pair.steps() == (["STOPPING"], [])
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPING"], [])
    pair.stop_all()
    pair.tell(pair.a)
    assert pair.steps() == (["STOPPED"], [])
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPED"], ["ARRIVED"])
    pair.tell(pair.a)
    assert pair.steps() == (["GIVEN"], ["ARRIVED"])
    pair.tell(pair.b)
    assert pair.steps() == (["GIVEN"], ["STARTED"])
    pair.tell(pair.a)
    assert pair.steps() == (["DONE"], ["STARTED"])
    pair.tell(pair.b)
    assert pair.steps() == (["DONE"], [])


def test_what_is_given_is_kept_until_the_other_group_has_begun() -> None:
    """Forgotten before, it would be in neither group: the other one lets go of what nobody gives."""
    pair = given()
    pair.tell(pair.a)
    assert pair.steps() == (["GIVEN"], ["ARRIVED"])
    assert pair.a.ask(GetTask(task="t")).answer.target == "STOPPED"


def test_the_task_is_the_same_under_a_higher_token() -> None:
    """Definition, version, reset and how far it has come go over; its sink knows it by its old names."""
    pair = Pair()
    pair.a.ask(PutTask(task="t", definition=definition(extra=1)))
    pair.a.report(pair.giver, "t", 1, batch_id=7, checkpoint="s3://lake/a/t")
    before = pair.a.ask(GetTask(task="t")).answer
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.carry()
    pair.b.redeal([pair.getter], {"other": pair.getter, "u": pair.getter})
    [granted] = pair.b.claim(pair.getter, "u").answer.granted
    assert granted.token > before.token
    assert (granted.definition, granted.definition_version) == (before.definition, 2)
    assert (granted.home, granted.target) == (TaskHome("a", "t"), "RUNNING")
    assert (granted.reached.batch_id, granted.reached.checkpoint) == (7, "s3://lake/a/t")
    assert pair.a.ask(GetTask(task="t")).error == "UNKNOWN_TASK"


@pytest.mark.parametrize("target", list(Target))
def test_what_was_wanted_of_it_is_wanted_there(target: Target) -> None:
    """A paused task is paused in the other group, a stopped one stopped."""
    pair = Pair(targets={"t": target})
    pair.start()
    pair.stop_all()
    pair.carry()
    assert pair.b.ask(GetTask(task="t")).answer.target == target.value


def test_the_token_is_above_that_of_a_former_task_of_the_name_too() -> None:
    """Whatever was issued in either group under either name is fenced."""
    pair = Pair()
    pair.b.create("u")
    for _ in range(5):
        pair.b.ask(SetTarget(task="u", target=Target.STOPPED))
        pair.b.ask(ResetTask(task="u"))
    high = pair.b.owner("u")[1]
    pair.b.ask(DeleteTask(task="u"))
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.carry()
    assert pair.b.owner("u")[1] > max(high, 1)


def test_several_tasks_change_hands_at_once_or_not_at_all() -> None:
    """As long as one is not stopped none is given."""
    pair = Pair("t", "u")
    pair.start()
    token = pair.a.owner("t")[1]
    pair.a.report(pair.giver, "t", token, TaskState.STOPPED)
    pair.carry()
    assert pair.steps() == (["STOPPED", "STOPPING"], [])
    pair.stop_all()
    pair.carry()
    assert pair.steps() == (["DONE", "DONE"], [])


def test_a_name_that_is_taken_meanwhile_has_everything_stay() -> None:
    """None of the tasks goes; what was wanted of them is wanted again, and the cause names the name."""
    pair = Pair("t", "u")
    pair.start()
    pair.b.create("u")
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPED", "STOPPED"], ["REFUSED", "REFUSED"])
    pair.carry()
    assert pair.steps() == (["CANCELLED", "CANCELLED"], [])
    assert "u" in str(stored(pair.a)[0].cause)
    assert pair.a.ask(GetTask(task="t")).answer.target == "RUNNING"
    assert pair.b.ask(GetTask(task="t")).error == "UNKNOWN_TASK"


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("arrived", [False, True])
def test_a_cancelled_transfer_leaves_all_as_it_was(*, stopped: bool, arrived: bool) -> None:
    """At every step before the point of no return, and asking twice is as good as once."""
    pair = Pair()
    pair.start()
    if stopped:
        pair.stop_all()
    if arrived:
        pair.tell(pair.a)
        pair.tell(pair.b)
    assert pair.cancel().error == "NONE"
    told = len(pair.a.told)
    assert pair.cancel().error == "NONE"
    assert len(pair.a.told) == told
    pair.carry()
    assert pair.steps() == (["CANCELLED"], [])
    assert pair.a.ask(GetTaskStatus(task="t")).answer.target == "RUNNING"
    assert pair.b.ask(GetTask(task="t")).error == "UNKNOWN_TASK"


def test_nothing_is_cancelled_beyond_the_point_of_no_return() -> None:
    """Neither when it is given nor when it is done."""
    pair = given()
    assert pair.cancel().error == "TASK_TRANSFERRED"
    pair.carry()
    assert pair.steps() == (["DONE"], [])
    assert pair.cancel().error == "TASK_TRANSFERRED"


def test_word_that_comes_late_changes_nothing() -> None:
    """What was stored once and is told again after the end, to either group."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    early = stored(pair.a)
    pair.tell(pair.b)
    late = stored(pair.b)
    pair.cancel()
    pair.tell(pair.b)
    pair.tell(pair.a, late)
    assert pair.steps() == (["CANCELLED"], [])
    pair.tell(pair.b, early)
    assert pair.steps() == (["CANCELLED"], ["ARRIVED"])
    assert pair.b.ask(GetTask(task="t")).answer.target == "STOPPED"
    pair.tell(pair.b)
    assert pair.steps() == (["CANCELLED"], [])


REFUSED: list[Request] = [
    DeleteTask(task="t"),
    RestartTask(task="t"),
    ResetTask(task="t"),
    SetTarget(task="t", target=Target.RUNNING),
    PutTask(task="t", definition=definition(extra=2)),
    PutTasks(tasks=(PutTask(task="t", definition=definition(extra=2)),)),
    PutTasks(tasks=(), delete=("t",)),
    StartTransfer(transfer="another", to_group="c", tasks={"t": "t"}),
]


@pytest.mark.parametrize("request_", REFUSED, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("group", ["a", "b"])
def test_a_task_under_transfer_is_not_changed(group: str, request_: Request) -> None:
    """In neither group; nothing is stored then."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    bench = pair.a if group == "a" else pair.b
    before = dict(bench.store)
    assert bench.ask(request_).error == "TASK_UNDER_TRANSFER"
    assert bench.store == before


def test_a_list_that_would_not_change_it_is_taken() -> None:
    """`tasks apply` of what is there already."""
    pair = Pair()
    pair.start()
    same = PutTask(task="t", definition=definition())
    assert pair.a.ask(PutTasks(tasks=(same,))).error == "NONE"


def test_groups_with_tasks_under_transfer_are_not_deleted() -> None:
    """Neither of the two; afterwards they are, and nothing of transfers is left of them."""
    pair = given()
    for bench, worker in ((pair.a, pair.giver), (pair.b, pair.getter)):
        bench.leave((worker, None))
        assert bench.ask(DeleteGroup()).error == "TASK_UNDER_TRANSFER"
    pair.carry()
    for bench in (pair.a, pair.b):
        assert bench.ask(DeleteGroup()).error == "NONE"
        assert {type(row) for row in bench.store.values()} <= {OwnershipRow}


def test_a_transfer_that_is_known_is_not_begun_again() -> None:
    """Whoever lost the answer asks again, and is told how it stands."""
    pair = Pair()
    first = pair.start().answer.rows
    told = len(pair.a.told)
    assert pair.start().answer.rows == first
    assert len(pair.a.told) == told


def test_a_transfer_is_only_checked() -> None:
    """With validate_only nothing is stored, and what is wrong is said."""
    pair = Pair()
    before = dict(pair.a.store)
    assert pair.start(validate_only=True).error == "NONE"
    assert pair.start("no", validate_only=True).error == "UNKNOWN_TASK"
    assert pair.a.store == before


def test_of_several_tasks_none_is_stopped_if_one_is_not_there() -> None:
    """Everything is checked before anything is done."""
    pair = Pair()
    before = dict(pair.a.store)
    assert pair.start("t", "no").error == "UNKNOWN_TASK"
    assert pair.a.store == before


def test_a_task_without_a_fence_waits_for_its_lost_owner() -> None:
    """It goes over when nothing of a former owner can run any more, by that one's own lease."""
    pair = Pair()
    pair.a.ask(PutTask(task="t", definition=definition(sink={"format": "console"})))
    pair.a.die(pair.giver)
    pair.start()
    pair.carry()
    assert pair.steps() == (["STOPPING"], [])
    pair.a.pass_time(5000)
    pair.carry()
    assert pair.steps() == (["DONE"], [])


def test_what_is_unsettled_is_settled_in_the_other_group() -> None:
    """A lost owner may still write: the sink is told by the next owner, wherever it is, and not before."""
    pair = Pair(targets={"t": Target.STOPPED})
    pair.a.die(pair.giver)
    pair.start()
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPED"], ["ARRIVED"])
    assert not pair.b.group.tasks.ownership["t"].unsettled
    pair.carry()
    assert pair.b.group.tasks.ownership["t"].unsettled


def test_a_later_task_of_the_name_is_another_one_to_its_sink() -> None:
    """It neither reads the checkpoint nor raises the fence of the one that has left."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.carry()
    token = pair.a.owner("t")[1]
    pair.a.create("t")
    pair.a.redeal([pair.giver], {"t": pair.giver})
    [granted] = pair.a.claim(pair.giver, "t").answer.granted
    assert granted.home == TaskHome("a", home_after("t", token))
    assert granted.token > token
    assert (granted.reset, granted.reached) == (None, None)


def test_a_group_that_has_given_all_it_was_says_what_became_of_it() -> None:
    """It never had a worker, so without tasks it is no group: whoever asks again is not told of a mistake."""
    pair = Pair()
    giver = Bench("a")
    giver.create("t")
    pair.a = giver
    pair.start()
    pair.carry()
    assert pair.a.ask(SetTarget(task="t", target=Target.RUNNING)).error == "GROUP_ID_NOT_FOUND"
    assert [row.step.value for row in pair.start().answer.rows] == ["DONE"]
    assert pair.cancel().error == "TASK_TRANSFERRED"
    other = CancelTransfer(transfer="other", cause="asked for")
    assert pair.a.ask(other).error == "GROUP_ID_NOT_FOUND"


def test_no_two_tasks_of_one_name_that_leave_are_one_to_their_sinks() -> None:
    """Nobody has ever owned them, so no token tells them apart: a group may only hand tasks on to others."""
    pair = Pair(targets={"t": Target.STOPPED})
    pair.stop_all()
    homes = []
    for number in range(3):
        names = {"t": f"t{number}"}
        start = StartTransfer(transfer=f"n{number}", to_group="b", tasks=names)
        assert pair.a.ask(start).error == "NONE"
        for _ in range(4):
            for to, peer in ((pair.b, pair.a), (pair.a, pair.b)):
                to.ask(AdvanceTransfer(transfer=f"n{number}", peers=_of(peer, f"n{number}")))
        homes.append(pair.b.group.tasks.ownership[f"t{number}"].home)
        pair.a.create("t", target=Target.STOPPED)
    assert homes[0] == TaskHome("a", "t")
    assert len(set(homes)) == len(homes)


def test_a_task_that_comes_back_has_its_own_names_again() -> None:
    """There and back: the home is the group's own, whatever was called so meanwhile."""
    pair = Pair()
    pair.a.ask(SetTarget(task="t", target=Target.STOPPED))
    pair.stop_all()
    number = pair.a.ask(ResetTask(task="t")).answer.token
    pair.start()
    pair.carry()
    back = StartTransfer(transfer="back", to_group="a", tasks={"t": "t"})
    assert pair.b.ask(back).error == "NONE"
    for _ in range(4):
        pair.a.ask(AdvanceTransfer(transfer="back", peers=_of(pair.b, "back")))
        pair.b.ask(AdvanceTransfer(transfer="back", peers=_of(pair.a, "back")))
    row = pair.a.group.tasks.ownership["t"]
    assert (row.home, row.reset) == (None, TaskReset(number))
    assert row.token > pair.b.group.tasks.ownership["t"].token - 1


def _of(bench: Bench, transfer: str) -> tuple[TransferRow, ...]:
    return tuple(row for row in stored(bench) if row.transfer == transfer)


def test_queries_of_a_task_that_has_left_are_nobodys_to_end() -> None:
    """A later task of the name has higher tokens, but a query under the old name is not its own."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.carry()
    theirs = pair.b.owner("t")[1]
    pair.a.create("t")
    for _ in range(3):
        pair.a.redeal([pair.giver], {"t": pair.giver})
        pair.a.claim(pair.giver, "t")
        pair.a.release(pair.giver, t=pair.a.owner("t")[1])
    home = pair.a.group.tasks.ownership["t"].home
    assert home is not None
    found = {"t": theirs, home.task: theirs}
    answer = pair.a.ask(ReportRequest(member_id=pair.giver, tasks=(), found=found)).answer
    assert answer.found == {"t": "NONE", home.task: "STALE_TOKEN"}


def test_what_a_quarantined_task_is_held_against_goes_with_it() -> None:
    """Nobody has taken its side: it is not run in the other group, either."""
    pair = Pair()
    token = pair.a.owner("t")[1]
    pair.a.report(pair.giver, "t", token, TaskState.FAILED, cause="too much", quarantine=True)
    assert pair.a.ask(GetTaskStatus(task="t")).answer.quarantined
    pair.start()
    pair.carry()
    assert pair.b.ask(GetTaskStatus(task="t")).answer.quarantined


def test_a_task_in_quarantine_is_failed_wherever_it_is_to_run() -> None:
    """Given or kept, it waits for somebody to take its side, and for no worker."""
    for is_given in (True, False):
        pair = Pair()
        token = pair.a.owner("t")[1]
        pair.a.report(pair.giver, "t", token, TaskState.FAILED, cause="too much", quarantine=True)
        pair.start()
        assert pair.a.owner("t")[2] == "STOPPED"
        if not is_given:
            pair.cancel()
        pair.carry()
        has_it = pair.b if is_given else pair.a
        row = has_it.group.tasks.ownership["t"]
        assert (row.state.value, row.cause, row.is_quarantined) == ("FAILED", "too much", True)


def test_a_completed_task_stays_completed() -> None:
    """It would do all it has done once more."""
    pair = Pair()
    pair.a.report(pair.giver, "t", pair.a.owner("t")[1], TaskState.COMPLETED)
    pair.start()
    pair.carry()
    assert pair.b.owner("t")[2] == "COMPLETED"


def test_the_outside_is_told_of_each_step() -> None:
    """By the group that the task leaves, with the names in the other one."""
    pair = Pair()
    pair.start(to={"t": "u"})
    pair.stop_all()
    pair.carry()
    told = [event for event in pair.a.told if event.type.startswith("transfer.")]
    assert [event.type for event in told] == ["transfer.started", "transfer.given", "transfer.completed"]
    assert {(event.task, event.transfer, event.to_group, event.to_task) for event in told} == {
        ("t", ID, "b", "u")
    }


def test_a_task_says_that_it_is_under_transfer() -> None:
    """In both groups, until it is over."""
    pair = given()
    assert pair.a.ask(GetTaskStatus(task="t")).answer.transfer == ID
    assert pair.b.ask(GetTaskStatus(task="t")).answer.transfer == ID
    pair.carry()
    assert pair.b.ask(GetTaskStatus(task="t")).answer.transfer is None


def test_only_the_latest_transfers_are_remembered() -> None:
    """A group that gives tasks for years keeps so many rows."""
    bench = Bench("a")
    for number in range(KEPT + 5):
        name, transfer = f"t{number}", f"move-{number}"
        bench.create(name)
        bench.ask(StartTransfer(transfer=transfer, to_group="b", tasks={name: name}))
        bench.pass_time(1)
        mine = _of(bench, transfer)
        for step in (TransferStep.ARRIVED, TransferStep.STARTED):
            peers = tuple(
                msgspec.structs.replace(row, group="b", leaves=False, peer_group="a", step=step)
                for row in mine
            )
            bench.ask(AdvanceTransfer(transfer=transfer, peers=peers))
    kept = stored(bench)
    assert len(kept) == KEPT
    assert kept[0].transfer == "move-5"


def test_there_is_no_such_transfer() -> None:
    """Neither one that nobody has begun nor one that comes in: the group that it leaves is asked."""
    pair = given()
    assert pair.a.ask(CancelTransfer(transfer="no", cause="")).error == "UNKNOWN_TRANSFER"
    assert pair.b.ask(CancelTransfer(transfer=ID, cause="")).error == "UNKNOWN_TRANSFER"


def test_a_name_under_transfer_cannot_be_created() -> None:
    """The task that has arrived is there."""
    pair = given()
    create = CreateTask(task="t", definition=definition(), target=Target.RUNNING)
    assert pair.b.ask(create).error == "TASK_EXISTS"
