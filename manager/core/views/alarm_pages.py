"""The alarms of one group a page at a time: what fires, then what is pending, then what is over.

Of each the worst come first, then the newest. A page goes on behind the last alarm of the one before: of
those that go on none is told twice or never, whatever begins and ends meanwhile. Of a list as long as a
group has tasks a page takes a few passes in C: what is not told is neither made ready nor put in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from manager.core.alarms.group_place import GroupPlace
from protocol.messages.alarm_notice import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from manager.core.alarms.alarms import GroupAlarms, Key
    from manager.core.stored_rows import AlarmRow

    Listed = AlarmRow | Key
    """A row of what fires or is over, the key of what is pending."""

FIRING, PENDING, RESOLVED = range(3)
_WORST_FIRST: Final = tuple(reversed(Severity))
_NAMES: Final[Callable[[Any], tuple[str, str]]] = attrgetter("rule", "subject")


class GroupPage(NamedTuple):
    """Some alarms; `following` is behind which of them others follow, `total` how many there are."""

    listed: Sequence[Listed]
    following: GroupPlace | None
    total: int


class _Stretch(NamedTuple):
    """Alarms of one state and severity; `at` tells of each when it came to be so.

    `oldest_first` lists them, once they are asked for.
    """

    state: int
    rank: int
    at: Callable[[Any], int]
    oldest_first: Callable[[], list[Any]]


def page_of(alarms: GroupAlarms, past: int, limit: int, after: GroupPlace | None) -> GroupPage:
    """Some alarms of a group.

    Args:
        alarms: the group's.
        past: how many that are over are listed, the latest.
        limit: how many are told at most.
        after: where the page before has ended; None for the first one.
    """
    pending = _pending(alarms)
    over = sorted(alarms.past.values(), key=_resolved_at, reverse=True)[:past]
    total = len(alarms.firing) + len(pending) + len(over)
    found: list[tuple[_Stretch, Listed]] = []
    for stretch in _stretches(alarms, pending, over):
        if after is None or (stretch.state, stretch.rank) >= (after.state, after.rank):
            found += [(stretch, each) for each in _first(stretch, limit + 1 - len(found), after)]
        if len(found) > limit:
            return GroupPage([each for _, each in found[:limit]], _place(*found[limit - 1]), total)
    return GroupPage([each for _, each in found], None, total)


def _place(stretch: _Stretch, listed: Listed) -> GroupPlace:
    return GroupPlace(stretch.state, stretch.rank, stretch.at(listed), listed.rule, listed.subject)


def _stretches(alarms: GroupAlarms, pending: Sequence[Key], over: Sequence[AlarmRow]) -> Iterator[_Stretch]:
    for rank, severity in enumerate(_WORST_FIRST):
        yield _Stretch(FIRING, rank, _fired_at, partial(_firing, alarms, severity))
    standings = alarms.standings
    for rank, severity in enumerate(_WORST_FIRST):
        of_severity = partial(_of_severity, alarms, pending, severity)
        yield _Stretch(PENDING, rank, lambda key: standings[key].pending_since or 0, of_severity)
    yield _Stretch(RESOLVED, 0, _resolved_at, lambda: sorted(over, key=_resolved_at))


def _firing(alarms: GroupAlarms, severity: Severity) -> list[AlarmRow]:
    """They are nearly in order as they come, unless a clock was set back; sorting makes use of that."""
    found = [row for row in alarms.firing.values() if row.severity == severity]
    found.sort(key=_fired_at)
    return found


def _pending(alarms: GroupAlarms) -> list[Key]:
    """By when they came to be so, as they are noted; the clock is monotonic."""
    rules = alarms.book.by_name
    return [key for key, (_, since, _) in alarms.standings.items() if since is not None and key[0] in rules]


def _of_severity(alarms: GroupAlarms, pending: Sequence[Key], severity: Severity) -> list[Key]:
    rules = {name for name, rule in alarms.book.by_name.items() if rule.severity is severity}
    return [key for key in pending if key[0] in rules]


def _first(stretch: _Stretch, limit: int, after: GroupPlace | None) -> Sequence[Listed]:
    """The newest ones that are not told yet; those that came at once by their names."""
    at, listed = stretch.at, stretch.oldest_first()
    if after is not None and (stretch.state, stretch.rank) == (after.state, after.rank):
        listed = _behind(listed, at, after)
    if len(listed) > limit:
        del listed[: bisect_left(listed, at(listed[-limit]), key=at)]
    listed.sort(key=_NAMES)
    listed.sort(key=at, reverse=True)
    return listed[:limit]


def _behind(listed: list[Listed], at: Callable[[Any], int], after: GroupPlace) -> list[Listed]:
    """Of those that came at the same time the ones with later names, and all that came before."""
    since = bisect_left(listed, after.at, key=at)
    same = listed[since : bisect_right(listed, after.at, key=at)]
    return listed[:since] + [each for each in same if _NAMES(each) > (after.rule, after.subject)]


_fired_at: Final[Callable[[AlarmRow], int]] = attrgetter("fired_at_ms")
_resolved_at: Final[Callable[[AlarmRow], int]] = attrgetter("resolved_at_ms")
