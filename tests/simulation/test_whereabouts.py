"""What is held of transfers in histories: a whole one passes, and rows that should never be stored do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from manager.core.commands import CreateTask, DeleteTask
from manager.core.coordinator import GroupCoordinator
from manager.core.stored_rows import Dropped, OwnershipRow, TaskRow, TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from manager.core.turn import ClockReading
from manager.settings import GroupSettings
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TransferStep
from tests.simulation.sink import Query
from tests.simulation.violations import InvariantError
from tests.simulation.whereabouts import Place, Whereabouts
from tests.unit.manager.core.bench import Ask, definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request

ID = "move"
HERE, THERE = Place("a", "t"), Place("b", "u")
HOME = TaskHome("a", "t")


class Followed:
    """Two groups, the first of which has the task `t`, and all that either stores followed."""

    def __init__(self) -> None:
        self.whereabouts = Whereabouts()
        self.transfers: dict[tuple[str, ...], TransferRow] = {}
        self._groups = {name: GroupCoordinator(GroupSettings(), lambda: "id") for name in ("a", "b")}
        self._now = 0
        self.ask("a", CreateTask(task="t", definition=definition(), target=Target.RUNNING))

    def ask(self, group: str, request: Request) -> None:
        """Have a group do something, and store what comes of it."""
        self._now += 1
        instant = ClockReading(self._now, self._now)
        turn = self._groups[group].handle(group, request, Ask(), instant)
        self.whereabouts.decided(turn, request)
        for change in turn.changes:
            if isinstance(change, TransferRow):
                self.transfers[change.key] = change
            elif isinstance(change, Dropped) and change.kind is TransferRow:
                del self.transfers[change.key]
            if isinstance(change, TaskRow | OwnershipRow | TransferRow | Dropped):
                self.whereabouts.stored(change)
        self.whereabouts.check()

    def move(self, *told: str) -> Followed:
        """Begin the transfer, and tell these groups in turn what the other one has stored."""
        self.ask("a", StartTransfer(transfer=ID, to_group="b", tasks={"t": "u"}))
        for group in told:
            peers = tuple(row for row in self.transfers.values() if row.group != group)
            self.ask(group, AdvanceTransfer(transfer=ID, peers=peers))
        return self

    def check_after(self, break_it: Callable[[Whereabouts], None]) -> None:
        """Store something, and look at it all."""
        break_it(self.whereabouts)
        self.whereabouts.check()


def test_a_whole_transfer_passes() -> None:
    """And in the end the task is where it went, under the names that its sink knows."""
    followed = Followed().move(*"bababa")
    followed.whereabouts.check_end()
    assert followed.whereabouts.steps.done == 1
    assert set(followed.whereabouts.tasks) == {THERE}
    assert followed.whereabouts.home(THERE) == HOME


def test_a_cancelled_transfer_passes() -> None:
    """The task is where it was; what had arrived is gone again."""
    followed = Followed().move("b")
    followed.ask("a", CancelTransfer(transfer=ID, cause="another day"))
    peers = tuple(row for row in followed.transfers.values() if row.group == "a")
    followed.ask("b", AdvanceTransfer(transfer=ID, peers=peers))
    followed.whereabouts.check_end()
    assert followed.whereabouts.steps.cancelled == 1
    assert set(followed.whereabouts.tasks) == {HERE}


def test_a_deleted_task_is_not_lost() -> None:
    """Somebody has asked for it."""
    followed = Followed()
    followed.ask("a", DeleteTask(task="t"))
    followed.whereabouts.check_end()
    assert not followed.whereabouts.alive


def lose_it(whereabouts: Whereabouts) -> None:
    """Both groups forget it."""
    whereabouts.stored(Dropped(TaskRow, HERE))
    whereabouts.stored(Dropped(TaskRow, THERE))


def run_it_twice(whereabouts: Whereabouts) -> None:
    """Either group wants it to run."""
    for place in (HERE, THERE):
        whereabouts.stored(replace(whereabouts.tasks[place], target=Target.RUNNING))


def rename_it(whereabouts: Whereabouts) -> None:
    """Its sink would know it by other names from now on."""
    whereabouts.stored(replace(whereabouts.owned[THERE], home=TaskHome("b", "other")))


def grant_an_old_token(whereabouts: Whereabouts) -> None:
    """The first group gives it to somebody, and the second one no higher token."""
    for place in (HERE, THERE):
        whereabouts.stored(replace(whereabouts.owned[place], owner=place.group, token=7))


def cancel_what_is_given(whereabouts: Whereabouts) -> None:
    """Its group has it back after all."""
    row = whereabouts.moves[HERE]
    assert row.step is TransferStep.GIVEN
    whereabouts.stored(replace(row, step=TransferStep.CANCELLED))


def forget_what_was_wanted(whereabouts: Whereabouts) -> None:
    """It was to run."""
    whereabouts.stored(replace(whereabouts.moves[THERE], step=TransferStep.STARTED, target=Target.PAUSED))


@pytest.mark.parametrize(
    ("break_it", "rule"),
    [
        (lose_it, "no task is lost"),
        (run_it_twice, "a task may run in one group"),
        (rename_it, "a task keeps its home"),
        (grant_an_old_token, "a token is above all before"),
        (cancel_what_is_given, "a transfer goes step by step"),
        (forget_what_was_wanted, "what was wanted is remembered"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_should_never_be_stored_is_noticed(break_it: Callable[[Whereabouts], None], rule: str) -> None:
    """While the task is given by one group, and has yet to begin in the other."""
    followed = Followed().move(*"ba")
    with pytest.raises(InvariantError, match=rule):
        followed.check_after(break_it)


def test_a_transfer_that_stands_still_is_noticed() -> None:
    """In the end nothing is on its way."""
    with pytest.raises(InvariantError, match="a transfer comes to its end"):
        Followed().move("b").whereabouts.check_end()


def test_whoever_writes_elsewhere_is_noticed() -> None:
    """The rows of a transferred task are under its home, and not under the names that it has now."""
    followed = Followed().move(*"baba")
    row = replace(followed.whereabouts.owned[THERE], owner="w", token=9)
    followed.whereabouts.stored(row)
    followed.whereabouts.check_writer(Query("b", "u", 9, HOME), "w")
    with pytest.raises(InvariantError, match="a task writes where its rows are"):
        followed.whereabouts.check_writer(Query("b", "u", 9, TaskHome("b", "u")), "w")


def test_whoever_ends_the_query_of_an_owner_is_noticed() -> None:
    """One of a lower token is nobody's."""
    followed = Followed().move(*"baba")
    followed.whereabouts.stored(replace(followed.whereabouts.owned[THERE], owner="w", token=9))
    followed.whereabouts.check_ended(Query("b", "u", 8, HOME))
    with pytest.raises(InvariantError, match="no owner's query is ended"):
        followed.whereabouts.check_ended(Query("b", "u", 9, HOME))
