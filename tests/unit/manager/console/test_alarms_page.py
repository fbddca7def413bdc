"""The alarms of all groups, and the form for their rules."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from manager.access.authorizer import ANYBODY, Caller
from manager.access.tokens import AccessToken
from manager.console.page import PageRequest
from manager.console.page_data import FiringAlarms
from manager.console.pages.alarm_rules import alarm_rules_page
from manager.console.pages.alarms import AlarmsData, AlarmsPage, alarms_page, filter_of
from manager.console.pages.task_alarms import alarm_figure, task_alarms_panel
from manager.storage.firing_alarms import FiringQuery, Place
from protocol.alarm_kinds import AlarmKind
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarm_notice import Severity
from protocol.messages.alarms import (
    COUNTED_AT_MOST,
    LONGEST_SILENCE_MS,
    AcknowledgeHerdRequest,
    AcknowledgeRequest,
    Alarm,
    AlarmRule,
    AlarmRulesResponse,
    PutAlarmRulesRequest,
    Silence,
    TaskAlarm,
    TaskAlarmsResponse,
    UnreadAlarmRule,
)
from protocol.roles import Role

LAST = Place(Severity.WARNING, 5, "g", "behind", "task:t")
NOW = 1_800_000_000_000
HOUR = 3_600_000


def alarm(task: str | None = "t", **fields: Any) -> Alarm:
    ordinary: dict[str, Any] = {
        "group": "g",
        "rule": "behind",
        "kind": "lag_seconds",
        "severity": Severity.WARNING,
        "state": "firing",
        "since_ms": NOW - HOUR,
        "value": 700.0,
        "threshold": 300.0,
    }
    return Alarm(task=task, **(ordinary | fields))


def page(
    *firing: Alarm, silences: tuple[Silence, ...] = (), rules: Any = (), query: dict[str, str] | None = None
) -> AlarmsPage:
    found = FiringAlarms(firing, len(firing), None)
    return alarms_page(AlarmsData(found, rules, silences), PageRequest("", "", query or {}), NOW)


def test_an_alarm_leads_to_what_it_is_about_and_can_be_acknowledged() -> None:
    """Of a task, or of a worker; the button asks for just this one."""
    of_task, of_worker = page(alarm(), alarm(None, member="w/1", kind="worker_overloaded")).alarms
    assert (of_task.path, of_task.value, of_task.threshold) == ("/groups/g/tasks/t", "11 min", "5 min")
    assert of_worker.path == "/groups/g/workers/w%2F1"
    assert of_worker.call == "POST /v1/groups/g/alarms/acknowledge"
    asked = msgspec.json.decode(of_worker.body, type=AcknowledgeRequest)
    assert (asked.rule, asked.task, asked.member, asked.by) == ("behind", None, "w/1", "console")


def test_an_alarm_of_no_group_leads_to_the_managers() -> None:
    """It is acknowledged by a call of its own; a rule of such a kind is about managers or the database."""
    gone = alarm(None, group=None, manager="m:1", rule="gone", kind="manager_gone", value=None)
    failing = alarm(None, group=None, rule="failing", kind="database_failing", value=42.0, threshold=20.0)
    rules = tuple(rule for rule in DEFAULT_RULES if rule.name in {"manager-gone", "database-failing"})
    shown = page(gone, failing, rules=rules)
    of_manager, of_database = shown.alarms
    assert (of_manager.group, of_manager.subject, of_manager.path) == ("herd", "m:1", "/#managers")
    assert (of_database.subject, of_database.value) == ("database", "42 percent")
    assert of_manager.call == "POST /v1/alarms/acknowledge"
    asked = msgspec.json.decode(of_manager.body, type=AcknowledgeHerdRequest)
    assert (asked.rule, asked.manager, asked.by) == ("gone", "m:1", "console")
    assert [line.about for line in shown.rules] == ["all managers", "the database"]


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, FiringQuery(100)),
        ({"group": " h "}, FiringQuery(100, group="h")),
        ({"rule": "other"}, FiringQuery(100, rule="other")),
        ({"severity": "critical"}, FiringQuery(100, severity=Severity.CRITICAL)),
        ({"severity": "loud", "after": "nonsense"}, FiringQuery(100)),
        ({"after": LAST.written()}, FiringQuery(100, after=LAST)),
    ],
)
def test_those_are_read_that_are_asked_for(query: dict[str, str], asked: FiringQuery) -> None:
    """By group, rule, severity and where the page before ended; what makes no sense is passed over."""
    assert filter_of(PageRequest("", "", query)).query(ANYBODY) == asked


def test_of_a_limited_token_only_its_groups_are_read() -> None:
    """In the query: what is cut out of a page afterwards has been counted in it."""
    token = AccessToken(
        token_id="i", name="n", digest=b"", role=Role.VIEWER, groups=("a", "b*"), created_at_ms=0
    )
    caller = Caller(token)
    assert filter_of(PageRequest("", "", {})).query(caller).may_know == ("a", "b*")


def test_a_page_that_others_follow_leads_on_and_back() -> None:
    """With the filter; how many there are is not counted to the end."""
    found = FiringAlarms([alarm()], COUNTED_AT_MOST, LAST.written())
    asked = PageRequest("", "", {"group": "g", "after": LAST.written()})
    shown = alarms_page(AlarmsData(found, (), ()), asked, NOW)
    assert shown.following == f"/alarms?group=g&after={LAST.written()}"
    assert (shown.path, shown.is_more) == ("/alarms?group=g", True)
    assert (page(alarm()).following, page(alarm()).is_more) == (None, False)


def test_of_a_kind_that_a_newer_manager_has_stored_no_unit_is_known() -> None:
    """A herd is upgraded one manager after the other."""
    (line,) = page(alarm(kind="moon_phase")).alarms
    assert (line.kind, line.value) == ("moon phase", "")


def test_a_silence_says_what_it_is_about_and_when_it_ends() -> None:
    """One that has ended is not shown, though it may be stored a while."""
    named: dict[str, Any] = {"reason": "upgrade", "by": "ada", "created_at_ms": NOW}
    silences = (
        Silence(id="1", ends_at_ms=NOW + 2 * HOUR, groups="g*", **named),
        Silence(id="2", ends_at_ms=NOW + HOUR, **named),
        Silence(id="3", ends_at_ms=NOW, **named),
    )
    assert page().longest_hours * HOUR == LONGEST_SILENCE_MS
    assert [(each.about, each.ends_in, each.call) for each in page(silences=silences).silences] == [
        ("groups g*", "2 h", "DELETE /v1/alarms/silences/1"),
        ("everything", "1 h", "DELETE /v1/alarms/silences/2"),
    ]


def test_a_rule_is_told_in_words() -> None:
    """What it is about, and when it fires."""
    rule = AlarmRule(
        name="r",
        kind=AlarmKind.RESTARTING,
        groups="g*",
        labels={"team": "a"},
        threshold=3,
        for_ms=60_000,
        window_ms=600_000,
        repeat_every_ms=HOUR,
        receivers=("ops", "ada"),
    )
    (line,) = page(rules=(rule,)).rules
    assert line.about == "groups g*, label team=a"
    assert line.condition == "more than 3 restarts, within 10 min, for 1 min, told again every 1 h"
    assert line.receivers == "ops, ada"


def test_what_the_form_shows_is_what_the_api_takes() -> None:
    """Whatever is left out of the document is at its default."""
    view = alarm_rules_page(AlarmRulesResponse(rules=DEFAULT_RULES, version=3, etag='"x"'))
    sent = msgspec.convert(json.loads(view.document), PutAlarmRulesRequest)
    assert sent.rules == DEFAULT_RULES
    assert view.example == view.document
    assert "labels" not in view.document


def test_rules_of_a_newer_version_are_shown_beside_the_form() -> None:
    """They are no part of the document that is sent."""
    newer = UnreadAlarmRule("newer", "k", "kind: Invalid enum value 'k'")
    view = alarm_rules_page(AlarmRulesResponse(rules=(), version=3, etag='"x"', unread=(newer,)))
    assert (view.unread, json.loads(view.document)) == ((newer,), {"rules": []})


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "s", "not known"),
        (0.0, None, "no"),
        (1.0, None, "yes"),
        (90.0, "s", "1 min"),
        (2.5e9, "bytes", "2.5 GB"),
        (12345.0, "rows", "12.3 k rows"),
    ],
)
def test_a_figure_has_its_unit(value: float | None, unit: str | None, shown: str) -> None:
    """What is not known is not nothing."""
    assert alarm_figure(value, unit) == shown


def test_a_task_shows_its_rules_with_their_present_values() -> None:
    """A task that no rule counts for has no such panel."""
    told = TaskAlarm(
        rule="behind",
        kind="lag_rows",
        severity=Severity.CRITICAL,
        state="firing",
        value=250.0,
        threshold=100.0,
        unit="rows",
        since_ms=NOW,
        acknowledged_by=None,
        silenced=False,
        receivers=(),
    )
    panel = task_alarms_panel(TaskAlarmsResponse(task="t", known=True, alarms=(told,)))
    assert panel is not None
    assert panel.ringing == 1
    assert (panel.lines[0].value, panel.lines[0].receivers) == ("250 rows", "nobody")
    assert task_alarms_panel(TaskAlarmsResponse(task="t", known=True, alarms=())) is None
