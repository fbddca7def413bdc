"""The life of one alarm: ok, pending, firing, resolved. Rules without I/O."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from manager.core.alarms.facts import Reading
    from protocol.messages.alarms import AlarmRule


class Verdict(Enum):
    """What a look at an alarm comes to."""

    STAYS = "stays"
    FIRES = "fires"
    RESOLVES = "resolves"


class Standing(NamedTuple):
    """An alarm between two looks; both moments are in milliseconds of the monotonic clock.

    `pending_since` is when its condition began to hold, None of one that fires or is ok. `clearing_since` is
    when the condition of one that fires ceased to hold.
    """

    is_firing: bool = False
    pending_since: int | None = None
    clearing_since: int | None = None


OK = Standing()
FIRING = Standing(is_firing=True)


class Moment(NamedTuple):
    """The time of a look, in milliseconds of the monotonic clock and since 1970.

    Nothing fires unless it `may_fire`: a group was taken up a moment ago, its members have yet to report.
    """

    now: int
    wall_ms: int
    may_fire: bool = True


def look(rule: AlarmRule, reading: Reading, before: Standing, at: Moment) -> tuple[Standing, Verdict]:
    """What becomes of an alarm.

    What is not known changes nothing: the alarm neither fires nor is resolved before it is known again.
    """
    holds = _holds(rule, reading, is_firing=before.is_firing)
    if holds is None:
        return before, Verdict.STAYS
    if before.is_firing:
        return _while_firing(rule, before, at, holds=holds)
    if not holds:
        return OK, Verdict.STAYS
    since = at.now if before.pending_since is None else before.pending_since
    held_ms = max(at.now - since, 0 if reading.since_ms is None else at.wall_ms - reading.since_ms)
    if at.may_fire and held_ms >= rule.for_ms:
        return FIRING, Verdict.FIRES
    return Standing(pending_since=since), Verdict.STAYS


def is_due_again(rule: AlarmRule, told_at_ms: int, wall_ms: int) -> bool:
    """Whether an alarm that was told at `told_at_ms` (since 1970) and goes on is to be told again.

    By either way of the clock: one that was set back a day is not to keep it from being told.
    """
    every_ms = rule.repeat_every_ms
    return every_ms is not None and abs(wall_ms - told_at_ms) >= every_ms


def _while_firing(rule: AlarmRule, before: Standing, at: Moment, *, holds: bool) -> tuple[Standing, Verdict]:
    if holds:
        return FIRING, Verdict.STAYS
    since = at.now if before.clearing_since is None else before.clearing_since
    if at.now - since >= rule.clear_after_ms:
        return OK, Verdict.RESOLVES
    return Standing(is_firing=True, clearing_since=since), Verdict.STAYS


def _holds(rule: AlarmRule, reading: Reading, *, is_firing: bool) -> bool | None:
    """Whether the condition holds; None if nobody knows. One that fires ends at another threshold."""
    if reading.value is None:
        return None
    limit = rule.threshold or 0.0
    if is_firing and rule.clear_threshold is not None:
        limit = rule.clear_threshold
    if reading.value > limit:
        return True
    return None if reading.at_least else False
