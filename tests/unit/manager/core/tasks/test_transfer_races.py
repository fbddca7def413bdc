"""What an enemy tries: transfers that meet others, end early, or meet what was there before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.commands import CreateTask, DeleteTask, ResetTask, SetTarget
from manager.core.scheduling import GATHER_AT_MOST_MS
from manager.core.stored_rows import OwnershipRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from manager.core.transfer_registry import KEPT
from protocol.messages.tasks import TaskHome, TaskReset
from protocol.states import Target, TransferStep
from tests.unit.manager.core.bench import REBALANCE_MS, definition
from tests.unit.manager.core.tasks.transfer_pair import ID, Pair, stored

if TYPE_CHECKING:
    from manager.core.stored_rows import TransferRow
    from tests.unit.manager.core.bench import Bench


def arrived(pair: Pair) -> Pair:
    """The tasks are stopped in the first group and known to the second."""
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPED"], ["ARRIVED"])
    return pair


def test_a_name_whose_transfer_was_cancelled_is_not_the_task_that_stayed() -> None:
    """A new task of that name in the other group has a checkpoint and a fence of its own."""
    pair = arrived(Pair())
    pair.cancel()
    pair.carry()
    pair.b.create("t")
    pair.b.redeal([pair.getter], {"other": pair.getter, "t": pair.getter})
    [granted] = pair.b.claim(pair.getter, "t").answer.granted
    assert (granted.home, granted.reset, granted.reached) == (None, None, None)


def test_a_cancelled_transfer_leaves_what_was_known_of_a_deleted_task() -> None:
    """The number of its last reset and its home are as before; only the token grows."""
    pair = Pair()
    pair.b.create("t", target=Target.STOPPED)
    reset = pair.b.ask(ResetTask(task="t")).answer.token
    pair.b.ask(DeleteTask(task="t"))
    before = pair.b.group.tasks.ownership["t"]
    arrived(pair)
    pair.cancel()
    pair.carry()
    after = pair.b.group.tasks.ownership["t"]
    assert (after.home, after.reset, after.unsettled) == (None, TaskReset(reset), before.unsettled)
    assert after.token > before.token


def test_later_tasks_of_a_name_that_nobody_ever_had_are_others_too() -> None:
    """Two of them leave, and no token is given to anybody meanwhile: each has a checkpoint of its own."""
    pair = Pair()
    homes = []
    for number in range(3):
        pair.a.ask(CreateTask(task="new", definition=definition(), target=Target.STOPPED))
        homes.append(_home(pair.a, "new"))
        transfer = f"move-{number}"
        start = StartTransfer(transfer=transfer, to_group="b", tasks={"new": f"new-{number}"})
        assert pair.a.ask(start).error == "NONE"
        for _ in range(3):
            pair.b.ask(AdvanceTransfer(transfer=transfer, peers=_of(pair.a, transfer)))
            pair.a.ask(AdvanceTransfer(transfer=transfer, peers=_of(pair.b, transfer)))
        assert _home(pair.b, f"new-{number}") == homes[-1]
    assert len(set(homes)) == 3


def _home(bench: Bench, task: str) -> TaskHome:
    return bench.group.tasks.ownership_of(bench.name, task).home or TaskHome(bench.name, task)


def _of(bench: Bench, transfer: str) -> tuple[TransferRow, ...]:
    return tuple(row for row in stored(bench) if row.transfer == transfer)


def test_a_packed_task_is_granted_to_nobody() -> None:
    """One that is unsettled would be given to a worker once more, under a token above the packed one."""
    pair = Pair(targets={"t": Target.STOPPED})
    pair.a.die(pair.giver)
    pair.start()
    assert pair.steps() == (["STOPPED"], [])
    [worker] = pair.a.worker_group(1)
    pair.a.deal([worker], {"t": worker})
    assert not pair.a.claim(worker, "t").answer.granted
    packed = pair.a.owner("t")[1]
    pair.carry()
    assert pair.b.owner("t")[1] > packed


def test_an_unsettled_task_that_stays_is_settled_there() -> None:
    """The cancel gives back what was packed: a worker is to raise the fence."""
    pair = Pair(targets={"t": Target.STOPPED})
    pair.a.die(pair.giver)
    pair.start()
    pair.cancel()
    assert pair.a.group.tasks.ownership["t"].unsettled


def test_a_refused_name_stays_under_its_own_transfer() -> None:
    """A task that is on its way to a third group is not let go of by one that would have its name."""
    pair = Pair()
    pair.b.create("t")
    away = StartTransfer(transfer="away", to_group="c", tasks={"t": "t"})
    assert pair.b.ask(away).error == "NONE"
    pair.start()
    pair.stop_all()
    pair.carry()
    assert [row.transfer for row in stored(pair.b)] == ["away"]
    resume = SetTarget(task="t", target=Target.RUNNING)
    assert pair.b.ask(resume).error == "TASK_UNDER_TRANSFER"


def test_a_refused_name_can_be_changed_as_ever() -> None:
    """The task that has the name has nothing to do with the transfer."""
    pair = Pair()
    pair.b.create("t")
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    pair.tell(pair.b)
    assert pair.steps() == (["STOPPED"], ["REFUSED"])
    assert pair.b.ask(SetTarget(task="t", target=Target.PAUSED)).error == "NONE"


def test_two_groups_that_began_under_one_id_both_keep_their_tasks() -> None:
    """Asked of two managers at once, neither knew of the other: whoever can is cancelled."""
    pair = Pair()
    pair.start()
    pair.stop_all()
    pair.tell(pair.a)
    [own] = stored(pair.a)
    foreign = msgspec.structs.replace(own, group="c")
    pair.tell(pair.b, (own, foreign))
    assert stored(pair.b) == ()
    pair.tell(pair.a, (foreign,))
    assert pair.steps() == (["CANCELLED"], [])
    assert "its id" in str(stored(pair.a)[0].cause)


def test_what_began_later_under_the_id_of_a_given_transfer_does_not_disturb_it() -> None:
    """The other group goes by the rows of the one that it has the tasks from."""
    pair = arrived(Pair())
    pair.tell(pair.a)
    assert pair.steps() == (["GIVEN"], ["ARRIVED"])
    [own] = stored(pair.a)
    foreign = msgspec.structs.replace(own, group="c", step=TransferStep.CANCELLED)
    pair.tell(pair.b, (foreign, own))
    assert pair.steps() == (["GIVEN"], ["STARTED"])
    pair.tell(pair.a, (foreign, *stored(pair.b)))
    assert pair.steps() == (["DONE"], ["STARTED"])


def test_an_id_is_not_used_for_another_transfer() -> None:
    """Asking again is harmless, asking for something else under it an error: nobody would do that else."""
    pair = Pair("t", "u")
    assert pair.start("t").error == "NONE"
    assert pair.start("t").error == "NONE"
    assert pair.start("u").error == "INVALID_REQUEST"
    other = StartTransfer(transfer=ID, to_group="c", tasks={"t": "t"})
    assert pair.a.ask(other).error == "INVALID_REQUEST"
    assert len(stored(pair.a)) == 1


def test_only_the_latest_cancelled_transfers_are_remembered() -> None:
    """Whoever begins and cancels for ever fills no memory."""
    pair = Pair()
    for number in range(KEPT + 5):
        pair.a.pass_time(1)
        start = StartTransfer(transfer=f"n{number}", to_group="b", tasks={"t": "t"})
        assert pair.a.ask(start).error == "NONE"
        assert pair.a.ask(CancelTransfer(transfer=f"n{number}", cause="")).error == "NONE"
    assert len(stored(pair.a)) == KEPT
    assert pair.a.ask(CancelTransfer(transfer=f"n{KEPT + 4}", cause="")).error == "NONE"


def test_a_database_put_back_from_a_copy_grants_no_packed_task() -> None:
    """`db` commands have every task settled; the one that is given is the other group's to settle."""
    pair = arrived(Pair())
    pair.tell(pair.a)
    assert pair.steps() == (["GIVEN"], ["ARRIVED"])
    key = OwnershipRow, ("a", "t")
    pair.a.store[key] = msgspec.structs.replace(pair.a.group.tasks.ownership["t"], unsettled=True)
    pair.a.crash()
    pair.a.pass_time(REBALANCE_MS)
    joined = pair.a.join(kind="sparkherd")
    pair.a.pass_time()
    assert joined.answer.tasks == ()
    worker = str(joined.answer.member_id)
    pair.a.deal([worker], {"t": worker})
    assert not pair.a.claim(worker, "t").answer.granted


def test_a_database_put_back_from_a_copy_grants_nothing_that_is_not_given_yet() -> None:
    """As long as the transfer can be cancelled, a fence of the other group's would shut out the first one."""
    pair = arrived(Pair(targets={"t": Target.STOPPED}))
    key = OwnershipRow, ("b", "t")
    pair.b.store[key] = msgspec.structs.replace(pair.b.group.tasks.ownership["t"], unsettled=True)
    pair.b.crash()
    pair.b.redeal([pair.getter], {"other": pair.getter, "t": pair.getter})
    assert not pair.b.claim(pair.getter, "t").answer.granted
    pair.carry()
    pair.b.pass_time(GATHER_AT_MOST_MS)
    assert pair.b.state == "PreparingRebalance"
    pair.b.redeal([pair.getter], {"other": pair.getter, "t": pair.getter})
    assert [each.task for each in pair.b.claim(pair.getter, "t").answer.granted] == ["t"]
