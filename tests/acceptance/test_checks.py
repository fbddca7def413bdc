"""`sparkherd tasks check --on-spark` against a real manager and a real worker, by the command line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

SLOW = "SELECT sum(r.id % 7) AS s FROM source CROSS JOIN range(100000000000) AS r"


def tasks(folder: Path) -> dict[str, dict[str, Any]]:
    """One that is sound, one whose table lacks a column, one that takes for ever, and an entry point."""
    incoming = folder / "incoming"
    incoming.mkdir()
    lines = [json.dumps({"sensor": f"s{n}", "celsius": n / 2}) + "\n" for n in range(20)]
    (incoming / "a.json").write_text("".join(lines))
    source = {
        "format": "json",
        "schema": "sensor STRING, celsius DOUBLE",
        "options": {"path": str(incoming)},
    }
    url = f"sqlite:///{folder / 'out.db'}"

    def sink(table: str) -> dict[str, Any]:
        return {"format": "sql", "options": {"url": url, "table": table}}

    with closing(sqlite3.connect(folder / "out.db")) as connection:
        connection.execute("CREATE TABLE narrow (sensor TEXT)")
    return {
        "sound": {"source": source, "sink": sink("readings")},
        "narrow": {"source": source, "sink": sink("narrow")},
        "slow": {"source": source, "sql": SLOW, "sink": {"format": "noop"}, "output_mode": "complete"},
        "code": {"entrypoint": "package.module:function"},
    }


def check(herd: Herd, *names: str, flags: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a check of some of the tasks."""
    entries = [{"task": name, "definition": herd_tasks[name]} for name in names]
    file = herd.folder / "tasks.json"
    file.write_text(json.dumps({"group": GROUP, "tasks": entries}))
    where = ("--manager", herd.manager.url, "--timeout", "60")  # a machine may be busy with other tests
    done = sparkherd("tasks", "check", "-f", str(file), "--on-spark", *where, *flags, cwd=herd.folder)
    return done.returncode, done.stdout, done.stderr


herd_tasks: dict[str, dict[str, Any]] = {}


def test_definitions_are_tried_on_a_worker(herd: Herd) -> None:
    """From the file to rows; nothing is left of it, neither task, table, row nor checkpoint."""
    herd_tasks.update(tasks(herd.folder))
    code, _, said = check(herd, "sound")
    assert (code, said.split(":")[2].strip()) == (1, "GROUP_ID_NOT_FOUND")
    herd.start_worker("anna")
    group = GroupView(herd)
    eventually(lambda: _is_member(group), "the worker is a member", alive=herd.daemons)
    code, told, said = check(herd, "sound", flags=("--json", "--rows", "3"))
    assert code == 0, said
    [found] = json.loads(told)["tasks"]
    assert found["columns"] == [{"name": "sensor", "type": "string"}, {"name": "celsius", "type": "double"}]
    assert found["rows"] == [["s0", 0.0], ["s1", 0.5], ["s2", 1.0]]
    assert found["worker"] == group.workers()["anna"]
    code, told, said = check(herd, "sound", "narrow", "code", flags=("--from", "end"))
    assert code == 2
    assert "s19" in told
    assert "narrow: sink.options.table: the table narrow has no column celsius" in said
    assert "code: NOT_CHECKABLE: what the entry point package.module:function" in said
    _nothing_is_left(herd)


def test_the_time_is_limited(herd: Herd) -> None:
    """What takes for ever is given up, and the worker is there for the next check."""
    herd_tasks.update(tasks(herd.folder))
    herd.start_worker("anna")
    group = GroupView(herd)
    eventually(lambda: _is_member(group), "the worker is a member", alive=herd.daemons)
    code, _, said = check(herd, "slow", flags=("--timeout", "8"))
    assert code == 1
    assert "slow: CHECK_TIMED_OUT: it was given up after" in said
    code, told, said = check(herd, "sound")
    assert code == 0, said
    assert "s0" in told


def _is_member(group: GroupView) -> bool:
    groups = group.groups()
    return GROUP in groups and group.describe().state == "Stable" and bool(group.workers())


def _nothing_is_left(herd: Herd) -> None:
    assert GroupView(herd).tasks() == {}
    assert not (herd.folder / "checkpoints").exists()
    with closing(sqlite3.connect(herd.folder / "out.db")) as connection:
        made = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert made == [("narrow",)]
