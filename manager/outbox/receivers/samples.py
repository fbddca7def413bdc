"""Notices as they may come: what templates are tried with, and what a test of a receiver is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from protocol.alarm_hints import RECEIVER_AWAY, TEST
from protocol.alarm_kinds import AlarmKind
from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject, Severity
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE_OF_RECEIVER: Final = "receiver "
"""What the rule of an alarm about a receiver begins with, before its name."""
_WHOLE: Final = AlarmSubject(
    since_ms=0,
    task="orders",
    worker="w1",
    value=123.0,
    threshold=60.0,
    causes=("java.lang.OutOfMemoryError: <&>\nat line 2", "an earlier one"),
)
_BARE: Final = AlarmSubject(since_ms=0)
_WORKER: Final = AlarmSubject(since_ms=0, member="w1-5f1c", value=1.5)


def trial_event(receiver: str, at_ms: int, *, is_over: bool = False) -> Event:
    """What a receiver is told that somebody wants to see working; `is_over` is what ends it."""
    notice = AlarmNotice(
        rule="test",
        kind=TEST,
        severity=Severity.INFO,
        receivers=(receiver,),
        subjects=(AlarmSubject(since_ms=at_ms, causes=("somebody asked for a test",)),),
        count=1,
    )
    kind = EventType.ALARM_RESOLVED if is_over else EventType.ALARM_FIRING
    return Event(id=0, at_ms=at_ms, type=kind, alarm=notice)


def away_notice(receiver: str, fallbacks: tuple[str, ...], since_ms: int, reason: str | None) -> AlarmNotice:
    """What the others are told of a receiver that takes nothing."""
    causes = () if reason is None else (reason,)
    subjects = (AlarmSubject(since_ms=since_ms, causes=causes),)
    return AlarmNotice(
        rule=RULE_OF_RECEIVER + receiver,
        kind=RECEIVER_AWAY,
        severity=Severity.CRITICAL,
        receivers=fallbacks,
        subjects=subjects,
        count=1,
    )


def receiver_of(rule: str) -> str:
    """Which one such an alarm is about; of what is told of one of its addresses, `NAME/ADDRESS`, the name."""
    return rule.removeprefix(RULE_OF_RECEIVER).partition("/")[0]


def sample_events() -> tuple[Event, ...]:
    """Every shape: firing, told again, resolved; of a group and of none; with all and with nothing."""
    firing = EventType.ALARM_FIRING
    return (
        _sample(firing, "shop", (_WHOLE,), 1),
        _sample(firing, "shop", (_WHOLE, _WORKER, _BARE), 12, is_repeat=True),
        _sample(EventType.ALARM_RESOLVED, "shop", (_WHOLE,), 1),
        _sample(firing, None, (_BARE,), 1),
    )


def template_trials() -> Iterator[Event]:
    """Every shape, of every kind and of every severity: what a template may ask for."""
    for event in sample_events():
        assert event.alarm is not None  # noqa: S101 - for mypy
        notices = (
            *(replace(event.alarm, kind=str(kind)) for kind in (*AlarmKind, RECEIVER_AWAY, TEST)),
            *(replace(event.alarm, severity=severity) for severity in Severity),
        )
        for notice in notices:
            yield replace(event, alarm=notice)


def _sample(
    kind: EventType,
    group: str | None,
    subjects: tuple[AlarmSubject, ...],
    count: int,
    *,
    is_repeat: bool = False,
) -> Event:
    notice = AlarmNotice(
        rule="lag",
        kind=AlarmKind.LAG_SECONDS,
        severity=Severity.CRITICAL,
        receivers=("ops",),
        subjects=subjects,
        count=count,
        is_repeat=is_repeat,
    )
    return Event(id=1, at_ms=60_000, type=kind, group=group, alarm=notice)
