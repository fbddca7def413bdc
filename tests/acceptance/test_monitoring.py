"""What a real herd shows of itself: scrapes, the worker's endpoint, logs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.processes import Daemon, Herd, Manager
from tests.acceptance.waiting import eventually
from tests.unit.telemetry.monitoring import samples_asked_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

PASSWORD = "hunter2-Zx9"
RATE = {"format": "rate", "options": {"rowsPerSecond": 50}}
TASKS = {
    "fine": {
        "source": RATE | {"watermark": {"column": "timestamp", "delay": "1 second"}},
        "sql": "SELECT DISTINCT timestamp, value FROM source",
        "sink": {"format": "noop"},
        "trigger": {"processing_time": "1 second"},
    },
    "doomed": {
        "source": RATE,
        "expect": [{"name": "counted", "where": "value >= 0", "on_violation": "drop"}],
        "sink": {
            "format": "sql",
            "options": {"url": f"postgresql://anna:{PASSWORD}@127.0.0.1:1/herd", "table": "t"},
        },
        "restart": {"max_restarts": 0, "window_ms": 1000},
    },
}
RULES = [{"name": "failed", "kind": "failed", "severity": "critical", "receivers": ["ops"]}]
RECEIVERS = "receivers: {ops: {kind: webhook, url: 'http://127.0.0.1:1/alarms'}}"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    receivers = tmp_path / "receivers.yaml"
    receivers.write_text(RECEIVERS)
    flags = ("--alarm-receivers", str(receivers), "--log-format", "json")
    herd = Herd(tmp_path, Manager(tmp_path, "--initial-rebalance-delay-ms", "0", *flags))
    yield herd
    herd.stop()


def get(url: str) -> str:
    with urlopen(url, timeout=120) as answer:
        text: str = answer.read().decode()
    return text


def scrape(url: str) -> Samples:
    """Every sample of a daemon by name and labels."""
    found = text_string_to_metric_families(get(f"{url}/metrics"))
    return {(s.name, frozenset(s.labels.items())): s.value for family in found for s in family.samples}


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


ABSENT = {
    "sparkherd_task_lag_rows",
    "sparkherd_task_lag_seconds",
    "sparkherd_task_partition_lag_rows",
    "sparkherd_task_lost_rows",
    "sparkherd_worker_kafka_requests_total",
}
"""What no task here has, for none reads a topic."""

UNMOVED = {"sparkherd_group_transferring_tasks", "sparkherd_group_transfer_step_since_seconds"}
"""What there is while tasks go to another group, which none here does."""

NOT_SURE = {"sparkherd_worker_heap_live_bytes"}
"""What is there once the old generation was collected, which a JVM of so short a life may never do."""


def create(url: str, task: str, definition: Any) -> None:
    ask(f"{url}/v1/groups/herd/tasks", "POST", {"task": task, "definition": definition})


def ask(url: str, method: str, body: Any) -> None:
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers, method=method), timeout=120) as answer:
        assert answer.status in (200, 201)


def status_url(worker: Daemon) -> str:
    """As the worker says it."""
    assert worker.process.stdout is not None
    line = worker.process.stdout.readline()
    assert line.startswith("status on http://127.0.0.1:"), worker.log()
    return line.removeprefix("status on ").strip()


def logged(daemon: Daemon) -> list[dict[str, Any]]:
    """Every line, each of which is JSON."""
    return [json.loads(line) for line in daemon.log().splitlines()]


def test_a_herd_shows_what_it_does_and_never_a_password(herd: Herd) -> None:
    """Dashboards and alerts find their names; a task that fails and a worker that is killed show."""
    ask(f"{herd.manager.url}/v1/alarms/rules", "PUT", {"rules": RULES})
    for task, definition in TASKS.items():
        create(herd.manager.url, task, definition)
    worker = herd.start_worker("anna", "--status-listen", "127.0.0.1:0", "--log-format", "json")
    url = status_url(worker)

    def settled() -> tuple[Samples, Samples] | None:
        manager, own = scrape(herd.manager.url), scrape(url)
        runs = value(own, "sparkherd_task_watermark_seconds", group="herd", task="fine")
        runs = runs and value(own, "sparkherd_worker_checkpoint_bytes", group="herd")
        fires = value(manager, "sparkherd_group_alarms_firing", group="herd", severity="critical")
        return (manager, own) if runs and fires == 1 else None

    manager, own = eventually(settled, "one task runs, the alarm of the other fires", alive=herd.daemons)
    check_figures(manager, own)
    check_status(herd.manager.url, url)
    check_logs(herd.manager, worker)
    worker.kill()
    eventually(lambda: lost(herd.manager.url) == 1, "the worker is lost", alive=[herd.manager])


def check_figures(manager: Samples, own: Samples) -> None:
    """Everything that is asked for by dashboard and rules is there, and the figures are of this herd."""
    absent = samples_asked_for() - {name for name, _ in [*manager, *own]}
    assert absent - NOT_SURE == ABSENT | UNMOVED
    assert value(manager, "sparkherd_group_members", group="herd", state="active") == 1
    assert value(manager, "sparkherd_group_tasks", group="herd", state="FAILED") == 1
    assert value(manager, "sparkherd_rebalances_total", group="herd", cause="join") == 1
    assert value(manager, "sparkherd_lease_changes_total", change="taken")
    assert value(own, "sparkherd_task_state", group="herd", task="doomed", state="FAILED") == 1
    assert value(own, "sparkherd_task_has_data", group="herd", task="doomed") == 0
    assert value(own, "sparkherd_task_source_lag", group="herd", task="fine", unit="offsets") == 0
    assert (value(own, "sparkherd_task_idle_seconds", group="herd", task="fine") or 0) < 60


def check_status(manager_url: str, url: str) -> None:
    """The cause of the failure can be read, the password cannot."""
    health = json.loads(get(f"{url}/healthz"))
    assert (health["group"], health["state"], health["tasks"]) == ("herd", "Stable", 2)
    shown = get(f"{url}/tasks")
    [doomed] = [task for task in json.loads(shown)["tasks"] if task["task"] == "doomed"]
    told = json.loads(get(f"{manager_url}/v1/groups/herd/tasks/doomed/status"))["cause"]
    assert told == doomed["cause"]
    assert "postgresql+psycopg://anna:***@127.0.0.1:1/herd" in told
    assert PASSWORD not in shown
    assert "query-monitor" in get(f"{url}/threads")


def check_logs(manager: Manager, worker: Daemon) -> None:
    """JSON, every line; with all that is known of each; no password."""
    assert PASSWORD not in worker.log() + manager.log()
    [failed] = [line for line in logged(manager) if line["event"] == "task failed"]
    assert (failed["group"], failed["task"]) == ("herd", "doomed")
    assert 1_700_000_000 < failed["token"] <= time.time()
    assert failed["member"].startswith("anna-")
    assert failed["generation"] == 1
    lines = logged(worker)
    assert all(line["group"] == "herd" for line in lines)
    joined = [line["event"] for line in lines].index("assignment")
    assert {line.get("member") for line in lines[joined:]} == {failed["member"]}
    assert {line.get("generation") for line in lines[joined:]} == {1}
    assert {"fine", "doomed"} <= {line.get("task") for line in lines[joined:]}


def lost(url: str) -> float | None:
    return value(scrape(url), "sparkherd_members_gone_total", group="herd", how="lost")
