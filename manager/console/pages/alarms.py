"""The alarms of all groups: what fires, of what nobody is told for a while, and by which rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from manager.console.formatting import duration
from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_api, group_path, task_path, with_query, worker_path
from manager.console.pages.task_alarms import alarm_figure
from manager.console.paging import PAGE_LENGTH
from manager.storage.firing_alarms import FiringQuery, place_of
from protocol.alarm_hints import Subject, hint_for
from protocol.alarm_kinds import TRAITS, About
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import (
    COUNTED_AT_MOST,
    LONGEST_SILENCE_MS,
    AcknowledgeHerdRequest,
    AcknowledgeRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manager.access.authorizer import Caller
    from manager.console.page_data import FiringAlarms, PageData
    from manager.storage.firing_alarms import Place
    from protocol.messages.alarms import Alarm, AlarmRule, Silence

UNITS: Final = {kind.value: traits.unit for kind, traits in TRAITS.items()}
"""A manager of another version may have stored other kinds."""
OF_HERD: Final = {About.MANAGER: "all managers", About.DATABASE: "the database"}
HERD: Final = "herd"
"""Where an alarm is that is of no group."""
ANYBODY: Final = "console"
"""Who has acknowledged an alarm where nobody has to log in."""


@dataclass(frozen=True, slots=True)
class AlarmFilter:
    """Which alarms; each empty for any. `after` is where the page before has ended, None on the first one."""

    group: str
    rule: str
    severity: str
    after: Place | None

    def query(self, caller: Caller) -> FiringQuery:
        """What is read of the database: never what the caller may not know of."""
        return FiringQuery(
            limit=PAGE_LENGTH,
            may_know=caller.groups,
            group=self.group or None,
            rule=self.rule or None,
            severity=Severity(self.severity) if self.severity else None,
            after=self.after,
        )


@dataclass(frozen=True, slots=True)
class AlarmLine:
    """An alarm; `subject` is a task or a worker, `path` its page. `call` and `body` acknowledge it.

    `hint` is what to try.
    """

    group: str
    group_path: str
    rule: str
    kind: str
    severity: str
    state: str
    subject: str
    path: str
    value: str
    threshold: str
    since_ms: int
    told_at_ms: int | None
    silenced: bool
    acknowledged_by: str | None
    receivers: str
    call: str
    body: str
    hint: str


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule, in words."""

    name: str
    kind: str
    severity: str
    enabled: bool
    about: str
    condition: str
    receivers: str


@dataclass(frozen=True, slots=True)
class SilenceLine:
    """A silence, in words; `call` ends it."""

    about: str
    reason: str
    by: str
    ends_in: str
    call: str


@dataclass(frozen=True, slots=True)
class AlarmsPage:
    """What the page shows. `path` leads to the first page of the list, `following` to the next one.

    There are `total` alarms, or more if it `is_more`. Rules and silences are the herd's: without
    `is_of_herd`, to a token of some groups, they are not shown. A silence takes `longest_hours` at most.
    """

    now_ms: int
    wanted: AlarmFilter
    severities: tuple[str, ...]
    alarms: tuple[AlarmLine, ...]
    total: int
    is_more: bool
    path: str
    following: str | None
    rules: tuple[RuleLine, ...]
    silences: tuple[SilenceLine, ...]
    by: str
    is_of_herd: bool
    longest_hours: int = LONGEST_SILENCE_MS // 3_600_000


@dataclass(frozen=True, slots=True)
class AlarmsData:
    """All that the API says of alarms."""

    firing: FiringAlarms
    rules: Sequence[AlarmRule]
    silences: Sequence[Silence]


async def alarms(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/alarms`."""
    data = AlarmsData(
        firing=await page_data.firing_alarms(filter_of(request).query(request.caller)),
        rules=(await page_data.alarm_rules()).rules,
        silences=await page_data.silences(),
    )
    newest = await page_data.latest_events(limit=1)
    view = alarms_page(data, request, page_data.now_ms())
    return Page("alarms.html", "Alarms", "alarms", view, newest[0].id if newest else 0)


def alarms_page(data: AlarmsData, request: PageRequest, now_ms: int) -> AlarmsPage:
    """What the page shows of what the API says."""
    wanted, by = filter_of(request), name_of(request.caller)
    filters = {"group": wanted.group, "rule": wanted.rule, "severity": wanted.severity}
    found = data.firing
    following = with_query("/alarms", **filters, after=found.following) if found.following else None
    return AlarmsPage(
        now_ms=now_ms,
        wanted=wanted,
        severities=tuple(each.value for each in Severity),
        alarms=tuple(_alarm_line(alarm, by) for alarm in found.alarms),
        total=found.total,
        is_more=found.total >= COUNTED_AT_MOST,
        path=with_query("/alarms", **filters),
        following=following,
        rules=tuple(_rule_line(rule) for rule in data.rules),
        silences=tuple(_silence_line(each, now_ms) for each in data.silences if each.ends_at_ms > now_ms),
        by=by,
        is_of_herd=not request.caller.is_limited,
    )


def filter_of(request: PageRequest) -> AlarmFilter:
    """What the address asks for; what it cannot mean is passed over."""
    group, rule, severity = (request.query.get(name, "").strip() for name in ("group", "rule", "severity"))
    is_known = severity in {each.value for each in Severity}
    return AlarmFilter(group, rule, severity if is_known else "", place_of(request.query.get("after", "")))


def name_of(caller: Caller) -> str:
    """As whom the caller acknowledges."""
    return caller.name if caller.token else ANYBODY


def _alarm_line(alarm: Alarm, by: str) -> AlarmLine:
    subject, path = _subject(alarm)
    unit = UNITS.get(alarm.kind)
    call, body = _acknowledging(alarm, by)
    return AlarmLine(
        group=alarm.group or HERD,
        group_path="/" if alarm.group is None else group_path(alarm.group),
        rule=alarm.rule,
        kind=alarm.kind.replace("_", " "),
        severity=alarm.severity.value,
        state=alarm.state,
        subject=subject,
        path=path,
        value=alarm_figure(alarm.value, unit) if unit else "",
        threshold=alarm_figure(alarm.threshold, unit) if unit else "",
        since_ms=alarm.since_ms,
        told_at_ms=alarm.told_at_ms,
        silenced=alarm.silenced,
        acknowledged_by=alarm.acknowledged_by,
        receivers=", ".join(alarm.receivers) or "nobody",
        call=call,
        body=body,
        hint=hint_for(alarm.kind, Subject(alarm.group, alarm.task, alarm.member)),
    )


def _acknowledging(alarm: Alarm, by: str) -> tuple[str, str]:
    wanted: AcknowledgeRequest | AcknowledgeHerdRequest
    if alarm.group is None:
        call = "POST /v1/alarms/acknowledge"
        wanted = AcknowledgeHerdRequest(rule=alarm.rule, by=by, manager=alarm.manager)
    else:
        call = f"POST {group_api(alarm.group)}/alarms/acknowledge"
        wanted = AcknowledgeRequest(rule=alarm.rule, by=by, task=alarm.task, member=alarm.member)
    return call, msgspec.json.encode(wanted).decode()


def _subject(alarm: Alarm) -> tuple[str, str]:
    if alarm.group is None:
        return alarm.manager or "database", "/#managers"
    if alarm.task is not None:
        return alarm.task, task_path(alarm.group, alarm.task)
    if alarm.member is not None:
        return alarm.member, worker_path(alarm.group, alarm.member)
    return alarm.group, group_path(alarm.group)


def _rule_line(rule: AlarmRule) -> RuleLine:
    return RuleLine(
        name=rule.name,
        kind=rule.kind.value.replace("_", " "),
        severity=rule.severity.value,
        enabled=rule.enabled,
        about=", ".join(_about(rule)),
        condition=", ".join(_condition(rule)),
        receivers=", ".join(rule.receivers) or "nobody",
    )


def _about(rule: AlarmRule) -> Iterator[str]:
    if (about := TRAITS[rule.kind].about) in OF_HERD:
        yield OF_HERD[about]
        return
    yield "all groups" if rule.groups == "*" else f"groups {rule.groups}"
    if rule.tasks != "*":
        yield f"tasks {rule.tasks}"
    for name, glob in rule.labels.items():
        yield f"label {name}={glob}"


def _condition(rule: AlarmRule) -> Iterator[str]:
    traits = TRAITS[rule.kind]
    if rule.threshold is not None:
        yield f"more than {alarm_figure(rule.threshold, traits.unit)}"
    if traits.window:
        yield f"within {duration(rule.window_ms)}"
    if rule.for_ms:
        yield f"for {duration(rule.for_ms)}"
    if rule.repeat_every_ms:
        yield f"told again every {duration(rule.repeat_every_ms)}"


def _silence_line(silence: Silence, now_ms: int) -> SilenceLine:
    named = (("rules", silence.rules), ("groups", silence.groups), ("tasks", silence.tasks))
    about = ", ".join(f"{what} {glob}" for what, glob in named if glob != "*")
    return SilenceLine(
        about=about or "everything",
        reason=silence.reason,
        by=silence.by,
        ends_in=duration(silence.ends_at_ms - now_ms),
        call=f"DELETE /v1/alarms/silences/{silence.id}",
    )
