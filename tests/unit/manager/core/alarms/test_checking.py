"""What rules are refused for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.core.alarms.checking import MOST_PROBLEMS, problems_of
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import MOST_OF_A_RULE, AlarmRule, PutAlarmRulesRequest

LAG: dict[str, Any] = {"name": "lag", "kind": "lag_rows", "threshold": 5}
FAILED: dict[str, Any] = {"name": "failed", "kind": "failed"}


def problems(*rules: dict[str, Any], receivers: tuple[str, ...] | None = ("ops",)) -> list[tuple[str, str]]:
    return [*problems_of(msgspec.convert(rules, tuple[AlarmRule, ...]), receivers)]


@pytest.mark.parametrize(
    ("rule", "place", "fault"),
    [
        (FAILED | {"threshold": 0}, "threshold", "a rule of kind failed has none"),
        (FAILED | {"clear_threshold": 1}, "threshold", "a rule of kind failed has none"),
        (LAG | {"threshold": None}, "threshold", "a rule of kind lag_rows needs one, in rows"),
        (LAG | {"clear_threshold": 6}, "clear_threshold", "6 is above the threshold, 5"),
        (
            FAILED | {"kind": "worker_heap", "threshold": 1, "tasks": "a*"},
            "tasks",
            "a rule of kind worker_heap",
        ),
        (LAG | {"window_ms": 60_000}, "window_ms", "a rule of kind lag_rows does not look back"),
        (LAG | {"floor_ms": 60_000}, "floor_ms", "a rule of kind lag_rows has none"),
        (FAILED | {"groups": "*" * 33}, "groups", "has 33 times * or ?, and may have 32"),
        (FAILED | {"tasks": "a?" * 20 + "*" * 13}, "tasks", "has 33 times * or ?, and may have 32"),
        (FAILED | {"labels": {"team": "?" * 40}}, "labels.team", "has 40 times * or ?, and may have 32"),
        (FAILED | {"receivers": ["ops", "opps"]}, "receivers[1]", "there is no receiver opps; those of this"),
    ],
)
def test_each_fault_names_its_field(rule: dict[str, Any], place: str, fault: str) -> None:
    """And nothing else is wrong then."""
    ((told_place, told),) = problems(rule)
    assert told_place == f"rules[0].{place}"
    assert told.startswith(fault)


def test_what_goes_with_a_kind_is_not_refused() -> None:
    """Fields that only some kinds have, and the defaults of those that others do not."""
    assert problems(LAG | {"kind": "silent", "floor_ms": 1}, LAG | {"name": "q", "kind": "quarantine"}) == []
    assert problems(LAG | {"kind": "restarting", "window_ms": 60_000}, FAILED | {"window_ms": 600_000}) == []
    assert problems(FAILED | {"tasks": "?" * 32, "labels": {"team": "*-" * 32}}) == []
    assert [*problems_of(DEFAULT_RULES, ())] == []


def test_names_are_unique() -> None:
    """They are what alarms and silences go by."""
    assert problems(LAG, LAG) == [("rules[1].name", "lag is the name of rules[0] already")]


def test_where_receivers_are_not_known_any_name_will_do() -> None:
    """Without a list of them nothing can be said."""
    assert problems(FAILED | {"receivers": ["nobody"]}, receivers=None) == []


def test_a_refusal_is_short_whatever_is_asked() -> None:
    """A body of 8 MB must not become an answer of a gigabyte, by names that are there or not."""
    rules = [FAILED | {"name": f"r{each}", "receivers": ["no"] * MOST_OF_A_RULE} for each in range(500)]
    told = problems(*rules, receivers=tuple("x" * 240 + str(each) for each in range(1000)))
    assert len(told) == MOST_PROBLEMS
    assert sum(len(fault) for _, fault in told) < 3_000_000
    assert told[0][1].endswith(" and 990 more")


@pytest.mark.parametrize("field", ["receivers", "labels"])
def test_a_rule_has_bounds(field: str) -> None:
    """All that a pass and a notice go through."""
    names = [f"n{each}" for each in range(MOST_OF_A_RULE + 1)]
    value = names if field == "receivers" else dict.fromkeys(names, "x")
    with pytest.raises(msgspec.ValidationError, match=f"length <= 100 - at `\\$.rules\\[0\\].{field}`"):
        msgspec.convert({"rules": [FAILED | {field: value}]}, PutAlarmRulesRequest)
