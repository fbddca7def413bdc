"""Alarms over REST: rules, silences, and what rings (protocol §5, Alarms; docs/alarms.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from protocol.alarm_kinds import AlarmKind
from protocol.etags import Tags
from protocol.messages.alarm_notice import Severity
from protocol.messages.base import MAX_INT, Millis, PositiveMillis, Request, Response
from protocol.names import Name

MOST_RULES: Final = 500
MOST_SILENCES: Final = 500
MOST_OF_A_RULE: Final = 100
"""Receivers, and labels."""
MAX_GLOB_LENGTH: Final = 249
MOST_WILDCARDS: Final = 32
"""Of a pattern; what is compared with a hundred thousand names is to be cheap, whoever has written it."""
LONGEST_SILENCE_MS: Final = 3653 * 86_400_000
"""Ten years, the leap days among them."""
COUNTED_AT_MOST: Final = 10_000
"""How many alarms of all groups fire is not counted further: that would read all of them."""
Glob = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=MAX_GLOB_LENGTH,
        pattern=r"^[A-Za-z0-9._*?-]+(?![\s\S])",
        description="a name in which `*` stands for any characters and `?` for one; 32 of these at most",
    ),
]
LabelGlob = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_GLOB_LENGTH,
        pattern=r"^[^\u0000]*$",
        description="a value in which `*` stands for any characters and `?` for one; 32 of these at most",
    ),
]
Person = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=249, pattern=r"^[^\u0000]*$", description="who, for people to read"
    ),
]
Reason = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=1000, pattern=r"^[^\u0000]*$", description="why, for people to read"
    ),
]
Threshold = Annotated[float, msgspec.Meta(ge=0, le=MAX_INT)]
Window = Annotated[int, msgspec.Meta(ge=60_000, le=86_400_000)]
RepeatMillis = Annotated[int, msgspec.Meta(ge=60_000, le=MAX_INT)]


class AlarmRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an alarm rings, and for whom.

    Of the rules of one kind and severity the last that fits a task, or a worker, is the one that counts:
    defaults come first, exceptions after them. The condition holds while its value is above `threshold`; it
    has to hold for `for_ms` before the alarm fires, and must not be above `clear_threshold` (`threshold`
    without it) for `clear_after_ms` before it is resolved. `window_ms` is what a kind that counts looks back
    at, `floor_ms` the shortest silence that is one. An alarm that goes on is told again every
    `repeat_every_ms` until somebody acknowledges it; never without it.
    """

    name: Name
    kind: AlarmKind
    severity: Severity = Severity.WARNING
    enabled: bool = True
    groups: Glob = "*"
    tasks: Glob = "*"
    labels: Annotated[dict[str, LabelGlob], msgspec.Meta(max_length=MOST_OF_A_RULE)] = {}
    threshold: Threshold | None = None
    clear_threshold: Threshold | None = None
    for_ms: Millis = 0
    clear_after_ms: Millis = 0
    window_ms: Window = 600_000
    floor_ms: Millis = 300_000
    repeat_every_ms: RepeatMillis | None = None
    receivers: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_OF_A_RULE)] = ()


def without_defaults(rule: AlarmRule) -> dict[str, Any]:
    """A rule as people write and read it: what is left at its default is left out."""
    usual = msgspec.to_builtins(AlarmRule(name=rule.name, kind=rule.kind))
    told = msgspec.to_builtins(rule)
    return {name: told[name] for name in told if name in {"name", "kind"} or told[name] != usual[name]}


class PutAlarmRulesRequest(Request, frozen=True, kw_only=True):
    """All rules there are to be; with `validate_only` they are only looked at.

    `if_match` is what `If-Match` says as a header, for those who cannot send one.
    """

    rules: Annotated[tuple[AlarmRule, ...], msgspec.Meta(max_length=MOST_RULES)]
    validate_only: bool = False
    if_match: Tags | None = None


class UnreadAlarmRule(msgspec.Struct, frozen=True):
    """A rule that is stored and that this manager cannot read, as one of a newer version's; `why` it cannot.

    It counts for nothing there, and stays when the others are replaced, unless one of these has its name.
    """

    name: str
    kind: str
    why: str


class AlarmRulesResponse(Response, frozen=True, kw_only=True):
    """All rules; `version` grows with each change of them, 0 before the first. `etag` goes with it.

    `unread` are those that are stored beside them and passed over.
    """

    rules: tuple[AlarmRule, ...]
    version: int
    etag: str
    unread: tuple[UnreadAlarmRule, ...] = ()


class SilenceRequest(Request, frozen=True, kw_only=True):
    """Tell nobody of some alarms until `ends_at_ms` (since 1970), which is in ten years at the latest.

    `reason` and `by` are for people.
    """

    ends_at_ms: PositiveMillis
    reason: Reason
    by: Person
    rules: Glob = "*"
    groups: Glob = "*"
    tasks: Glob = "*"


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """Some alarms of which nobody is told for a while; one of a worker matches where `tasks` is `*`."""

    id: str
    ends_at_ms: int
    reason: str
    by: str
    created_at_ms: int
    rules: str = "*"
    groups: str = "*"
    tasks: str = "*"


class SilenceResponse(Response, frozen=True, kw_only=True):
    """The silence that was made."""

    silence: Silence


class SilenceListResponse(Response, frozen=True, kw_only=True):
    """Those that have not ended."""

    silences: tuple[Silence, ...]


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One alarm as it stands: `state` is `pending`, `firing` or `resolved`.

    `task`, `member` or `manager` is what it is about, or the database; the last two are of no group, `group`
    is null then. `since_ms` is when the condition began to hold, the other times
    are null until that has happened; all are since 1970. `told_at_ms` is when receivers were told last.
    `silenced` says that nobody is told for now.
    """

    group: str | None
    rule: str
    kind: str
    severity: Severity
    state: str
    since_ms: int
    task: str | None = None
    member: str | None = None
    manager: str | None = None
    worker: str | None = None
    value: float | None = None
    threshold: float | None = None
    fired_at_ms: int | None = None
    told_at_ms: int | None = None
    resolved_at_ms: int | None = None
    acknowledged_by: str | None = None
    acknowledged_at_ms: int | None = None
    silenced: bool = False
    receivers: tuple[str, ...] = ()


class AlarmListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which alarms are asked for; of more than `limit` the first ones, or those after a page's `next`."""

    severity: Severity | None = None
    rule: Name | None = None
    group: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    after: Annotated[str, msgspec.Meta(max_length=4000)] | None = None


class GroupAlarmsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many past alarms are told as well, and how many alarms in all at most.

    Of more than `limit` the first ones, or those after a page's `next`, with the same `past`.
    """

    past: Annotated[int, msgspec.Meta(ge=0, le=200)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000
    after: Annotated[str, msgspec.Meta(max_length=4000)] | None = None


class AlarmListResponse(Response, frozen=True, kw_only=True):
    """Alarms, the worst and newest first.

    `total` is how many there are; of all groups it is not counted further than 10,000. `next` is what to ask
    `after` for those that follow, null if there are none.
    """

    alarms: tuple[Alarm, ...]
    total: int
    next: str | None = None


class AcknowledgeRequest(Request, frozen=True, kw_only=True):
    """`by` has seen it, and nobody is told again before its end; all of a rule without `task` or `member`."""

    rule: Name
    by: Person
    task: Name | None = None
    member: str | None = None


class AcknowledgeHerdRequest(Request, frozen=True, kw_only=True):
    """`by` has seen what fires of no group by a rule, of one `manager` or of all, or of the database."""

    rule: Name
    by: Person
    manager: str | None = None


class AcknowledgeResponse(Response, frozen=True, kw_only=True):
    """How many alarms were acknowledged by this."""

    acknowledged: int


class TaskAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that counts for a task, and how it stands: `state` is `ok`, `pending` or `firing`.

    `value` is what it looks at now, in `unit`, null while that is not known; `unit` is null of a condition
    that holds or does not. `since_ms` is when it began to hold (since 1970), null while it does not.
    """

    rule: str
    kind: str
    severity: Severity
    state: str
    value: float | None
    threshold: float | None
    unit: str | None
    since_ms: int | None
    acknowledged_by: str | None
    silenced: bool
    receivers: tuple[str, ...]


class TaskAlarmsResponse(Response, frozen=True, kw_only=True):
    """The rules that count for a task, in their order; `known` unless none was read yet."""

    task: str
    known: bool
    alarms: tuple[TaskAlarm, ...]
