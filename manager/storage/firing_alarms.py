"""What fires in any group, a page at a time, along an index: the worst first, then the newest.

A page goes on behind the last alarm of the one before: of those that go on to fire none is told twice or
never, whatever begins and ends meanwhile. An alarm that begins between two pages may be missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import false, func, literal, or_, select, true, tuple_, union_all

from manager.core.stored_rows import AlarmRow
from manager.core.written_places import read_place, written
from manager.storage.schema import IS_FIRING, TABLES
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import COUNTED_AT_MOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

ALARMS: Final = TABLES[AlarmRow]
MOST_APART: Final = 16
"""Groups that are read one by one, each along its own index; of a caller for more all are looked through."""
_A = ALARMS.c
_WORST_FIRST: Final = tuple(reversed(Severity))


class Place(NamedTuple):
    """Where a page has ended: what the last alarm is ordered by."""

    severity: Severity
    fired_at_ms: int
    group: str
    rule: str
    subject: str

    def written(self) -> str:
        """As `next` has it: a text that fits into an address."""
        return written(self)


def place_of(text: str) -> Place | None:
    """The place that was `written`; None if it is none."""
    return read_place(text, Place)


class FiringQuery(NamedTuple):
    """Which alarms; all that are None are of any.

    `may_know` are the groups that the caller may know of, by name or by what they begin with and a `*`; none
    are all.
    """

    limit: int
    may_know: tuple[str, ...] = ()
    group: str | None = None
    rule: str | None = None
    severity: Severity | None = None
    after: Place | None = None

    def fits(self, row: AlarmRow) -> bool:
        """Whether it is of the rule and severity that are asked for."""
        return self.rule in {None, row.rule} and self.severity in {None, row.severity}


class FiringPage(NamedTuple):
    """Some alarms; `following` is where others follow, `total` how many fit, `COUNTED_AT_MOST` at most."""

    rows: Sequence[AlarmRow]
    following: Place | None
    total: int


def read_page(connection: Connection, asked: FiringQuery) -> FiringPage:
    """One statement for the page, another one for how many there are."""
    rows = [AlarmRow(**row) for row in connection.execute(_page(asked)).mappings()]
    total = int(connection.execute(_counted(asked)).scalar_one())
    if len(rows) <= asked.limit:
        return FiringPage(rows, None, total)
    kept = rows[: asked.limit]
    return FiringPage(kept, _place(kept[-1]), total)


def _place(row: AlarmRow) -> Place:
    return Place(Severity(row.severity), row.fired_at_ms, row.group, row.rule, row.subject)


def _page(asked: FiringQuery) -> Select[Any]:
    """The first ones of each stretch, which is in order along an index, and of these the first ones."""
    first = [_first(rank, chosen, asked.limit + 1) for rank, chosen in _stretches(asked)]
    found = union_all(*first or [select(ALARMS, literal(0).label("rank")).where(false())]).subquery()
    columns = [found.c[column.name] for column in _A]
    return select(*columns).order_by(found.c.rank, *_order(found.c)).limit(asked.limit + 1)


def _first(rank: int, chosen: Sequence[ColumnElement[bool]], limit: int) -> Select[Any]:
    wanted = select(ALARMS, literal(rank).label("rank")).where(IS_FIRING, *chosen)
    return select(wanted.order_by(*_order(_A)).limit(limit).subquery())


def _order(columns: Any) -> tuple[ColumnElement[Any], ...]:
    return columns.fired_at_ms.desc(), columns.group, columns.rule, columns.subject


def _stretches(asked: FiringQuery) -> Iterator[tuple[int, list[ColumnElement[bool]]]]:
    """Of each severity and group that is read apart: what began with the last alarm, and what did before."""
    for rank, severity in enumerate(_WORST_FIRST):
        if asked.severity not in {None, severity}:
            continue
        for name, groups in _groups(asked):
            for rest in _rest(asked, rank, name):
                yield rank, [groups, _A.severity == severity.value, *_of_rule(asked), *rest]


def _rest(asked: FiringQuery, rank: int, group: str | None) -> Iterator[list[ColumnElement[bool]]]:
    """What is not told yet of the severity of that rank, in one group or in all."""
    after = asked.after
    reached = -1 if after is None else _WORST_FIRST.index(after.severity)
    if after is None or rank > reached:
        yield []
    elif rank == reached:
        yield [_A.fired_at_ms == after.fired_at_ms, _is_behind(after, group, asked.rule)]
        yield [_A.fired_at_ms < after.fired_at_ms]


def _is_behind(after: Place, group: str | None, rule: str | None) -> ColumnElement[bool]:
    """Of what began at the same time; what is the same of all is left out, so that an index is gone along."""
    if group not in {None, after.group}:
        return literal(group) > literal(after.group)
    last = {"group": after.group, "rule": after.rule, "subject": after.subject}
    same = {"group": group, "rule": rule, "subject": None}
    left = [name for name, value in last.items() if value != same[name]]
    return tuple_(*(_A[name] for name in left)) > tuple_(*(literal(last[name]) for name in left))


def _of_rule(asked: FiringQuery) -> list[ColumnElement[bool]]:
    return [] if asked.rule is None else [_A.rule == asked.rule]


def _groups(asked: FiringQuery) -> list[tuple[str | None, ColumnElement[bool]]]:
    """The groups that are asked for and may be known: each apart, with its name, or all in one condition."""
    beginnings = [known[:-1] for known in asked.may_know if known.endswith("*")]
    names = {known for known in asked.may_know if not known.endswith("*")}
    if asked.group is not None:
        is_known = not asked.may_know or asked.group in names or asked.group.startswith(tuple(beginnings))
        return [(asked.group, _A.group == asked.group)] if is_known else []
    if not asked.may_know:
        return [(None, true())]
    if not beginnings and len(names) <= MOST_APART:
        return [(name, _A.group == name) for name in sorted(names)]
    begins = (_A.group.startswith(beginning, autoescape=True) for beginning in beginnings)
    return [(None, or_(_A.group.in_(sorted(names)), *begins))]


def _counted(asked: FiringQuery) -> Select[Any]:
    severities = [] if asked.severity is None else [_A.severity == asked.severity.value]
    chosen = [or_(false(), *(groups for _, groups in _groups(asked))), *severities, *_of_rule(asked)]
    some = select(literal(1)).select_from(ALARMS).where(IS_FIRING, *chosen).limit(COUNTED_AT_MOST)
    return select(func.count()).select_from(some.subquery())
