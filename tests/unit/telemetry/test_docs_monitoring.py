"""docs/monitoring.md, the dashboard and the alert rules name what there is, and all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from manager.metrics import catalog as of_manager
from manager.metrics.facts import DepartureKind, RebalanceCause
from protocol.errors import ErrorCode
from protocol.states import GroupState, TaskState
from tests.unit.telemetry.monitoring import PAGE, expressions, matchers, panels, rules, samples_asked_for
from worker.metrics import catalog as of_worker

if TYPE_CHECKING:
    from telemetry.metrics import Metric

METRICS = {metric.name: metric for metric in (*of_manager.CATALOG, *of_worker.CATALOG)}
VALUES = {
    ("sparkherd_group_tasks", "state"): {state.value for state in TaskState},
    ("sparkherd_group_state", "state"): {state.value for state in GroupState},
    ("sparkherd_members_gone_total", "how"): {how.value for how in DepartureKind},
    ("sparkherd_rebalances_total", "cause"): {cause.value for cause in RebalanceCause},
    ("sparkherd_requests_total", "code"): {code.name for code in ErrorCode},
    ("sparkherd_worker_requests_total", "code"): {code.name for code in ErrorCode},
}


def sampled(metric: Metric) -> set[str]:
    """The names of its samples."""
    if metric.kind == "histogram":
        return {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
    return {metric.name}


SAMPLES = {name: metric for metric in METRICS.values() for name in sampled(metric)}


@pytest.mark.parametrize("metrics", [of_manager.CATALOG, of_worker.CATALOG], ids=["manager", "worker"])
def test_the_page_says_of_every_metric_what_the_code_says(metrics: tuple[Metric, ...]) -> None:
    """Kind, labels and meaning, in one table for each daemon."""
    table = "".join(f"| `{m.name}` | {m.kind} | {', '.join(m.labels)} | {m.help} |\n" for m in metrics)
    assert table in PAGE.read_text()


def test_the_page_names_nothing_that_is_not_there() -> None:
    """A metric that was renamed is renamed in the prose, too."""
    named = set(re.findall(r"\bsparkherd_[a-z_]*[a-z]", PAGE.read_text()))
    assert named - METRICS.keys() == set()


def test_catalogues_are_as_prometheus_wants_them() -> None:
    """Counters end in _total and nothing else does; buckets are in order; times are in seconds."""
    for metric in METRICS.values():
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert (metric.kind == "histogram") == bool(metric.buckets), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert not re.search(r"_(ms|millis)\b", metric.name)


def test_dashboard_and_rules_ask_for_what_there_is() -> None:
    """By the very names of the samples."""
    asked = {name for name in samples_asked_for() if name.startswith("sparkherd_")}
    assert asked - SAMPLES.keys() == set()


def test_every_metric_is_looked_at_by_the_dashboard_or_a_rule() -> None:
    """What nobody looks at need not be measured."""
    looked_at = {SAMPLES[name].name for name in samples_asked_for() if name in SAMPLES}
    assert METRICS.keys() - looked_at == set()


def test_conditions_are_on_labels_and_values_that_there_are() -> None:
    """A misspelt one matches nothing, and an alert that never fires looks like peace."""
    found = list(matchers())
    assert len(found) > 30
    for name, label, operator, value in found:
        metric = SAMPLES[name]
        assert label in {*metric.labels, "job", "instance", "le"}, f"{name}{{{label}}}"
        known = VALUES.get((metric.name, label))
        if known is not None and "$" not in value:
            parts = value.split("|") if operator in {"=~", "!~"} else [value]
            assert set(parts) <= known, f"{name}{{{label}{operator}{value!r}}}"


def test_sums_are_by_labels_that_there_are() -> None:
    """`by (grup)` would put everything into one."""
    labels = {"job", "instance", "le", *(label for metric in METRICS.values() for label in metric.labels)}
    for expression in expressions():
        for inside in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", expression):
            assert {label.strip() for label in inside.split(",")} <= labels, expression


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    """Each under a name of its own."""
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"].strip()
        assert rule["annotations"]["description"].strip()


def test_every_panel_has_a_place_and_a_name_of_its_own() -> None:
    """On Grafana's grid of 24 columns; none covers another."""
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in panels()}) == len(panels())
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert panel["title"]
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
