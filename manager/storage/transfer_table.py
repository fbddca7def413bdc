"""Transfers as all managers see them: what each of two groups has stored, whichever manager has it."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import Text, and_, func, or_, select, type_coerce

from manager.core.stored_rows import GroupRow, MemberRow, TaskRow, TransferRow, Unreadable
from manager.storage.row_reader import made_rows
from manager.storage.schema import TABLES
from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from manager.storage.database import Database

MOST_SHOWN: Final = 100
"""Transfers of one list; the newest."""
_T = TABLES[TransferRow].c
_OVER: Final = (TransferStep.DONE, TransferStep.CANCELLED)


class Destination(NamedTuple):
    """What is stored of a group that is to get tasks, as far as that matters.

    `exists` says whether there is such a group, `is_sparkherd` whether workers may join it, `taken` the names
    asked about that it has tasks of, `members` its members, and `tasks` those that are to come.
    """

    exists: bool
    is_sparkherd: bool
    taken: frozenset[str]
    members: tuple[MemberRow, ...]
    tasks: tuple[TaskRow, ...]


class Standing(NamedTuple):
    """How far a transfer is: of each of its groups, how many of its tasks are at which step there."""

    groups: frozenset[str]
    steps: frozenset[tuple[str, bool, str, int]]

    @property
    def is_to_be_unpacked(self) -> bool:
        """Whether the other group has yet to take in what the first one has packed."""
        return {(leaves, step) for _, leaves, step, _ in self.steps} == {(True, TransferStep.STOPPED.value)}


class TransferTable:
    """Reads what groups have stored; every method raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def active(self) -> Mapping[str, Standing]:
        """How each transfer stands of which either group has a row that is not over."""
        return await self._database.transact(_active)

    async def brief(self, transfers: Collection[str]) -> Mapping[str, Sequence[TransferRow]]:
        """The rows of several transfers as in `rows`, but for what is packed; of the unreadable none."""
        return await self._database.transact(partial(_brief, transfers=transfers))

    async def rows(self, transfer: str) -> Sequence[TransferRow]:
        """All rows of one transfer, whichever group has them; none while one of them cannot be read."""
        return await self._database.transact(partial(_all_rows, transfer=transfer))

    async def of(self, transfer: str) -> tuple[TransferRow, ...]:
        """The rows of one transfer in the group that the tasks leave; none if nobody knows it."""
        return await self._database.transact(partial(_of, transfer=transfer))

    async def latest(
        self, group: str | None, state: str | None, may_know: Callable[[str], bool]
    ) -> Sequence[Sequence[TransferRow]]:
        """The newest transfers that somebody may know of.

        Args:
            group: one that gives or gets them; None for any.
            state: `active` or `over`; None for both.
            may_know: whether the caller may know of a group; of a transfer it may if of either.
        """
        return await self._database.transact(partial(_latest, group=group, state=state, may_know=may_know))

    async def destination(
        self, group: str, names: Collection[str], source: str, tasks: Collection[str]
    ) -> Destination:
        """What is known of `group`, which is to get `tasks` of group `source` under `names`."""
        return await self._database.transact(
            partial(_destination, group=group, names=names, source=source, tasks=tasks)
        )


def _active(connection: Connection) -> Mapping[str, Standing]:
    """A few lines for each, however many tasks it has: a server's are made in the event loop."""
    alive = select(_T.transfer).where(_T.step.not_in(_OVER))
    step = type_coerce(_T.step, Text)  # one that makes no sense is not to hide the others
    sums = (
        select(_T.transfer, _T.group, _T.peer_group, _T.leaves, step, func.count())
        .where(_T.transfer.in_(alive))
        .group_by(_T.transfer, _T.group, _T.peer_group, _T.leaves, _T.step)
    )
    groups: defaultdict[str, set[str]] = defaultdict(set)
    steps: defaultdict[str, set[tuple[str, bool, str, int]]] = defaultdict(set)
    for transfer, group, peer_group, leaves, told, count in connection.execute(sums):
        groups[transfer] |= {group, peer_group}
        steps[transfer].add((group, leaves, told, count))
    return {each: Standing(frozenset(groups[each]), frozenset(found)) for each, found in steps.items()}


def _brief(connection: Connection, transfers: Collection[str]) -> Mapping[str, Sequence[TransferRow]]:
    """One statement, so that both groups of each are seen as of one moment."""
    found: defaultdict[str, list[TransferRow]] = defaultdict(list)
    unreadable = set()
    for row in made_rows(connection, TransferRow, _T.transfer.in_(transfers), without=("parcel",)):
        if isinstance(row, TransferRow):
            found[row.transfer].append(row)
        elif isinstance(row, Unreadable):
            unreadable.add(row.stored_key[1])
    return {transfer: rows for transfer, rows in found.items() if transfer not in unreadable}


def _all_rows(connection: Connection, transfer: str) -> Sequence[TransferRow]:
    """One statement, so that both groups are seen as of one moment."""
    found = tuple(made_rows(connection, TransferRow, _T.transfer == transfer))
    rows = tuple(row for row in found if isinstance(row, TransferRow))
    return rows if len(rows) == len(found) else ()


def _of(connection: Connection, transfer: str) -> tuple[TransferRow, ...]:
    return tuple(_rows(connection, and_(_T.transfer == transfer, _T.leaves)))


def _latest(
    connection: Connection, group: str | None, state: str | None, may_know: Callable[[str], bool]
) -> Sequence[Sequence[TransferRow]]:
    chosen: list[ColumnElement[bool]] = [_T.leaves.is_(True)]
    if group is not None:
        chosen.append(or_(_T.group == group, _T.peer_group == group))
    if state is not None:
        chosen.append(_T.step.in_(_OVER) if state == "over" else _T.step.not_in(_OVER))
    started = func.max(_T.started_at_ms).label("started")
    newest = (
        select(_T.transfer, _T.group, _T.peer_group, started)
        .where(*chosen)
        .group_by(_T.transfer, _T.group, _T.peer_group)
        .order_by(started.desc(), _T.transfer)
    )
    known = (
        transfer
        for transfer, giver, getter, _ in connection.execute(newest)
        if may_know(giver) or may_know(getter)
    )
    order = list(islice(known, MOST_SHOWN))
    found: defaultdict[str, list[TransferRow]] = defaultdict(list)
    for row in _rows(connection, and_(_T.transfer.in_(order), _T.leaves)) if order else ():
        found[row.transfer].append(row)
    return [found[transfer] for transfer in order if transfer in found]


def _rows(connection: Connection, chosen: ColumnElement[bool]) -> Iterable[TransferRow]:
    return (row for row in made_rows(connection, TransferRow, chosen) if isinstance(row, TransferRow))


def _destination(
    connection: Connection, group: str, names: Collection[str], source: str, tasks: Collection[str]
) -> Destination:
    groups, members, of_tasks = (TABLES[kind].c for kind in (GroupRow, MemberRow, TaskRow))
    headers = made_rows(connection, GroupRow, groups.group == group)
    there = made_rows(connection, MemberRow, members.group == group)
    wanted = and_(of_tasks.group == source, of_tasks.task.in_(tasks))
    taken = select(of_tasks.task).where(of_tasks.group == group, of_tasks.task.in_(names))
    has_tasks = connection.execute(select(of_tasks.task).where(of_tasks.group == group).limit(1)).first()
    found = tuple(row for row in there if isinstance(row, MemberRow))
    known = next((row for row in headers if isinstance(row, GroupRow)), None)
    return Destination(
        exists=bool(found or has_tasks or (known is not None and known.generation)),
        is_sparkherd=known is None or known.protocol_type in {None, "sparkherd"},
        taken=frozenset(connection.execute(taken).scalars()),
        members=found,
        tasks=tuple(row for row in made_rows(connection, TaskRow, wanted) if isinstance(row, TaskRow)),
    )
