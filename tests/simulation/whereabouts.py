"""In which group each task is, and by which names sinks know it: what transfers may never change."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from manager.core.commands import CreateTask, DeleteGroup, DeleteTask, PutTask
from manager.core.stored_rows import Dropped, OwnershipRow, TaskRow, TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TaskState, TransferStep
from tests.simulation.transfer_steps import TransferSteps
from tests.simulation.violations import hold

if TYPE_CHECKING:
    from typing import TypeGuard

    from manager.core.stored_rows import Change, Record
    from manager.core.turn import Turn
    from protocol.messages.base import Request
    from protocol.messages.ownership import GrantedTask
    from tests.simulation.sink import Query

ORDERS = (CreateTask, PutTask, DeleteTask, DeleteGroup)
"""What an admin has tasks come and go by; whatever else does so is a transfer."""
OF_TRANSFERS = (StartTransfer, CancelTransfer, AdvanceTransfer)


class Place(NamedTuple):
    """A name of a task in a group."""

    group: str
    task: str


def home_of(row: OwnershipRow) -> TaskHome:
    """By which names sinks know the task of `row`."""
    return row.home or TaskHome(row.group, row.task)


class Whereabouts:
    """Follows all that is stored, of all groups, a row at a time.

    `alive` are the homes of tasks that somebody has created and nobody deleted. `moves` has the transfer that
    a task is under, where it leaves and where it comes.
    """

    def __init__(self) -> None:
        self.alive: dict[TaskHome, None] = {}
        self.owned: dict[Place, OwnershipRow] = {}
        self.tasks: dict[Place, TaskRow] = {}
        self.moves: dict[Place, TransferRow] = {}
        self._places: defaultdict[TaskHome, dict[Place, None]] = defaultdict(dict)
        self._known_as: defaultdict[TaskHome, dict[Place, None]] = defaultdict(dict)
        self._granted: dict[TaskHome, int] = {}
        self._ordered: dict[int, object] = {}
        self._touched: dict[TaskHome, None] = {}
        self.steps = TransferSteps()

    def home(self, place: Place) -> TaskHome:
        """Of the task that is there, or was last."""
        row = self.owned.get(place)
        return TaskHome(*place) if row is None else home_of(row)

    # What a manager has decided.

    def decided(self, turn: Turn, request: Request | None) -> None:
        """A turn that `request` has brought about; None if a deadline has."""
        self.steps.decided(turn)
        moving = turn.group.transfers.moving
        for change in filter(_is_of_task, turn.changes):
            if not isinstance(request, OF_TRANSFERS):
                hold("what is under transfer is left alone", change.key[-1] not in moving, (request, change))
            if isinstance(request, ORDERS):
                self._ordered[id(change)] = change

    # What is stored.

    def stored(self, change: Change) -> None:
        """Each row, in order."""
        match change:
            case OwnershipRow():
                self._note_owner(change)
            case TaskRow():
                self._note_task(change)
            case TransferRow():
                self._note_move(change)
            case Dropped() if change.kind is TaskRow:
                self._note_gone(Place(*change.key), change)
            case Dropped() if change.kind is TransferRow:
                self.steps.forgotten(change.key)
                self._end_move(Place(change.key[0], change.key[2]), change.key[1])
            case _:
                pass

    def _note_owner(self, row: OwnershipRow) -> None:
        """Every token is above all under which the sink was written to, whichever group gives it."""
        place = Place(*row.key)
        before, old, home = self.owned.get(place), self.home(place), home_of(row)
        highest = self._granted.get(home, -1)
        hold("a task's own names are no others", row.home != TaskHome(*place), row)
        if home != old:
            hold("a task keeps its home", place not in self.tasks, (before, row))
            self._known_as[old].pop(place, None)
        elif before is not None and before.state is TaskState.COMPLETED and place in self.moves:
            hold("what has completed stays so", row.state is TaskState.COMPLETED, (before, row))
        if row.owner is not None and (before is None or row.owner != before.owner):
            hold("a token is above all before", row.token > highest, (highest, before, row))
            self._granted[home] = row.token
        self._known_as[home][place] = None
        self.owned[place] = row
        self._touched |= {old: None, home: None}

    def _note_task(self, row: TaskRow) -> None:
        place, is_ordered = Place(*row.key), self._ordered.pop(id(row), None) is not None
        home = self.home(place)
        if place not in self.tasks and is_ordered:
            hold("a new task is no other's namesake", home not in self.alive, (home, row))
            self.alive[home] = None
        self._places[home][place] = self._touched[home] = None
        self.tasks[place] = row

    def _note_gone(self, place: Place, dropped: Dropped) -> None:
        home = self.home(place)
        del self.tasks[place]
        del self._places[home][place]
        self._touched[home] = None
        if self._ordered.pop(id(dropped), None) is not None:
            self.alive.pop(home, None)

    def _note_move(self, row: TransferRow) -> None:
        place = Place(row.group, row.task)
        self.steps.stored(row, self.tasks.get(place), self.owned.get(place))
        if row.is_over:
            self._end_move(place, row.transfer)
        elif row.step is not TransferStep.REFUSED:
            self.moves[place] = row
        if row.step is TransferStep.STARTED:
            owned, highest = self.owned[place], self._granted.get(self.home(place), -1)
            hold("a token is above all before", owned.token > highest, (highest, owned))

    def _end_move(self, place: Place, transfer: str) -> None:
        if place in self.moves and self.moves[place].transfer == transfer:
            del self.moves[place]

    # What holds after each transaction.

    def check(self) -> None:
        """No task is lost, none is twice, and none may run in two groups."""
        for home in self._touched:
            places = self._places[home]
            hold("no task is lost", places or home not in self.alive, home)
            twice = len(places) > 1 and not any(place in self.moves for place in places)
            hold("a task is in two groups only on its way", not twice, places)
            running = [place for place in places if self._may_run(place)]
            hold("a task may run in one group", len(running) < 2, running)
        self._touched = {}
        self.steps.check()

    def _may_run(self, place: Place) -> bool:
        row = self.owned.get(place)
        is_somebodys = row is not None and (row.owner is not None or row.unsettled)
        return is_somebodys or self.tasks[place].target is not Target.STOPPED

    def is_packed_unsettled(self, place: Place) -> bool:
        """Whether a transfer has noted down that somebody may still write for a task that is on its way."""
        move = self.moves.get(place)
        return move is not None and move.parcel is not None and move.parcel.ownership.unsettled

    def check_end(self) -> None:
        """Nothing is on its way any more, and each task is in one group."""
        left = self.steps.left()
        hold("a transfer comes to its end", not left, left)
        places = {home: tuple(self._places[home]) for home in self.alive}
        wrong = {home: places for home, places in places.items() if len(places) != 1}
        hold("each task is in one group", not wrong, wrong)

    # Those who write.

    def check_grant(self, group: str, grant: GrantedTask) -> None:
        """Whoever is granted a task is told by which names its sink knows it."""
        row = self.owned[Place(group, grant.task)]
        is_known = row.token != grant.token or (grant.home or TaskHome(group, grant.task)) == home_of(row)
        hold("a grant tells the home", is_known, (grant, row))

    def check_writer(self, query: Query, who: str) -> None:
        """Nobody writes for a task that has been stopped, and whose sink has been told; or elsewhere."""
        hold("nobody writes for a task at rest", not self._is_at_rest(query.home), (who, query))
        row = self.owned.get(Place(query.group, query.task))
        present = query.home if row is None or row.token != query.token else home_of(row)
        hold("a task writes where its rows are", query.home == present, (who, query, row))

    def check_ended(self, query: Query) -> None:
        """Somebody has found a query, and ends it: it is not the one that its task has."""
        row = self.owned[Place(query.group, query.task)]
        hold("no owner's query is ended", row.owner is None or row.token != query.token, (query, row))

    def _is_at_rest(self, home: TaskHome) -> bool:
        rows = [self.owned[place] for place in self._known_as[home]]
        return bool(rows) and all(
            row.state is TaskState.STOPPED
            and not row.owner
            and not row.unsettled
            and not self.is_packed_unsettled(Place(*row.key))
            for row in rows
        )


def _is_of_task(change: Record) -> TypeGuard[TaskRow | Dropped]:
    return isinstance(change, TaskRow) or (isinstance(change, Dropped) and change.kind is TaskRow)
