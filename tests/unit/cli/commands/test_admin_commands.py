"""groups, tasks and workers: what they ask the manager, and what they print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.answers import member, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager


def lines(text: str) -> list[list[str]]:
    """The cells of a printed table."""
    return [line.split() for line in text.splitlines()]


def test_groups_list(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A table for people; as JSON what the manager said."""
    printed = lines(sparkherd("groups", "list", "--manager", herd.url).out)
    assert printed == [
        ["GROUP", "STATE", "TYPE", "GENERATION", "MEMBERS", "TASKS"],
        ["herd", "Stable", "sparkherd", "2", "1", "2"],
    ]
    assert (
        json.loads(sparkherd("groups", "list", "--json", "--manager", herd.url).out)
        == (herd.answers["GET", "/v1/groups"][1])
    )


def test_groups_describe(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """The group in one line, and its members, the leader marked."""
    out = sparkherd("groups", "describe", "herd", "--manager", herd.url).out
    assert "herd: Stable, generation 2, assignor sticky, 2 tasks" in out
    assert "w-1 (leader)" in out


def test_groups_describe_of_a_foreign_type(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A member whose assignment is none of ours is shown all the same."""
    described = herd.answers["GET", "/v1/groups/herd"][1]
    herd.on("GET", "/v1/groups/herd", {**described, "members": [member(assignment=None, metadata=7)]})
    assert sparkherd("groups", "describe", "herd", "--manager", herd.url).code == 0


def test_groups_rebalance_and_delete(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Each asks the manager for just that."""
    herd.on("POST", "/v1/groups/herd/rebalance", {"error": "NONE"})
    herd.on("DELETE", "/v1/groups/herd", {"error": "NONE"})
    assert sparkherd("groups", "rebalance", "herd", "--reason", "why", "--manager", herd.url).code == 0
    assert sparkherd("groups", "delete", "herd", "--json", "--manager", herd.url).code == 0
    assert herd.asked("POST") == [("/v1/groups/herd/rebalance", {"reason": "why"})]
    assert herd.asked("DELETE") == [("/v1/groups/herd", None)]


def test_workers_list(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Workers with their capacity, labels and number of tasks."""
    row = lines(sparkherd("workers", "list", "--group", "herd", "--manager", herd.url).out)[1]
    assert row[:6] == ["w-1", "-", "127.0.0.1", "2.0", "zone=a", "2"]


def test_workers_drain_and_undo(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Each asks the manager for just that, and says what comes of it."""
    path = "/v1/groups/herd/members/w-1/drain"
    herd.on("POST", path, {"error": "NONE"}, 202)
    herd.on("DELETE", path, {"error": "NONE"}, 202)
    told = sparkherd("workers", "drain", "w-1", "--group", "herd", "--manager", herd.url)
    assert (told.code, told.out) == (0, "w-1 is being drained, its tasks move away\n")
    undone = sparkherd(
        "workers", "drain", "w-1", "--undo", "--group", "herd", "--json", "--manager", herd.url
    )
    assert json.loads(undone.out) == {"worker": "w-1", "draining": False}
    assert [(method, asked) for method, asked, _ in herd.requests] == [("POST", path), ("DELETE", path)]


def test_workers_of_a_foreign_group(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A group of another protocol type has members but no workers."""
    described = herd.answers["GET", "/v1/groups/herd"][1]
    herd.on("GET", "/v1/groups/herd", {**described, "protocol_type": "consumer"})
    done = sparkherd("workers", "list", "--group", "herd", "--manager", herd.url)
    assert done.code == 2
    assert "'consumer'" in done.err


def test_tasks_list_shows_the_first_line_of_a_cause(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """A table stays a table however long the trace."""
    out = sparkherd("tasks", "list", "--group", "herd", "--manager", herd.url).out
    assert len(out.splitlines()) == 3
    assert "no such path" in out
    assert "trace" not in out


@pytest.mark.parametrize(
    ("lag", "shown"),
    [
        ({"at_ms": 1, "rows": 1234}, "1,234"),
        ({"at_ms": 1, "rows": 1234, "unknown": 2}, "1,234+"),
        ({"at_ms": 1, "unknown": 2}, "?"),
        ({"at_ms": 1, "trouble": "no broker answers"}, "?"),
        ({"at_ms": 1}, "-"),
        (None, "-"),
    ],
)
def test_tasks_list_shows_how_far_they_are_behind(
    sparkherd: Callable[..., Run], manager: ScriptedManager, lag: Any, shown: str
) -> None:
    """Rows; whether there are partitions besides that nobody knows of; and that nothing is known."""
    answer = {"error": "NONE", "tasks": [task("delays", lag=lag)], "tasks_revision": 4}
    manager.on("GET", "/v1/groups/herd/tasks", answer)
    header, row, *_ = sparkherd("tasks", "list", "--group", "herd", "--manager", manager.url).out.splitlines()
    assert row[header.index("LAG") :].split()[0] == shown


def test_tasks_status_shows_the_whole_cause(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Asked for one task, the trace is there too."""
    out = sparkherd("tasks", "status", "late", "--group", "herd", "--manager", herd.url).out
    assert "late: no such path\ntrace" in out


def test_tasks_status_says_of_a_quarantine_how_to_end_it(
    sparkherd: Callable[..., Run], manager: ScriptedManager
) -> None:
    """Beside the cause; of other tasks nothing is said of it."""
    for name, is_in_it in (("late", True), ("delays", False)):
        answer = {"error": "NONE", **task(name, state="FAILED", cause="too much", quarantined=is_in_it)}
        manager.on("GET", f"/v1/groups/herd/tasks/{name}/status", answer)
    out = sparkherd("tasks", "status", "late", "delays", "--group", "herd", "--manager", manager.url).out
    assert "late: is in quarantine: nobody is given it before `sparkherd tasks restart`, `resume`" in out
    assert "delays: is in quarantine" not in out


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (
            {"dropped": 3, "quarantined": 1234, "left_out": {"late": 1234, "sane": 3, "known": 0}},
            "delays: 1,234 rows were put aside, 3 dropped: late 1,234, sane 3",
        ),
        ({"dropped": 3}, "delays: 0 rows were put aside, 3 dropped"),
        (
            {"quarantined": 1, "left_out": {"a\x1b[2J": 1}},
            "delays: 1 rows were put aside, 0 dropped: a\ufffd[2J 1",
        ),
        ({"dropped": 0, "quarantined": 0, "left_out": {}}, ""),
        ({"quarantined": "many"}, ""),
        (None, ""),
    ],
)
def test_tasks_status_shows_what_was_left_out(
    sparkherd: Callable[..., Run], manager: ScriptedManager, metrics: Any, said: str
) -> None:
    """Only if anything was, and whatever a worker says of it."""
    manager.on("GET", "/v1/groups/herd/tasks/delays/status", task("delays", metrics=metrics))
    out = sparkherd("tasks", "status", "delays", "--group", "herd", "--manager", manager.url).out
    assert out.partition("\n\n")[2].strip() == said


@pytest.mark.parametrize(
    ("verb", "method", "suffix"),
    [
        ("pause", "PUT", "/pause"),
        ("resume", "PUT", "/resume"),
        ("stop", "PUT", "/stop"),
        ("restart", "POST", "/restart"),
        ("delete", "DELETE", ""),
    ],
)
def test_steering(
    sparkherd: Callable[..., Run], herd: ScriptedManager, verb: str, method: str, suffix: str
) -> None:
    """Each verb asks its one thing of each task."""
    for name in ("delays", "late"):
        herd.on(method, f"/v1/groups/herd/tasks/{name}{suffix}", {"error": "NONE"}, 202)
    done = sparkherd("tasks", verb, "delays", "late", "--group", "herd", "--manager", herd.url)
    assert done.code == 0
    assert [path for path, _ in herd.asked(method)] == [
        f"/v1/groups/herd/tasks/{name}{suffix}" for name in ("delays", "late")
    ]


def test_groups_rebalances(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """The history with its reasons, as many lines as asked for; as JSON what the manager said."""
    rebalance = {
        "generation_id": 2,
        "reason": "w-1 joined",
        "started_at_ms": 0,
        "duration_ms": 12,
        "moved": 1,
    }
    answer = {"error": "NONE", "rebalances": [{**rebalance, "members": 1}], "history": []}
    herd.on("GET", "/v1/groups/herd/rebalances?limit=3", answer)
    command = ("groups", "rebalances", "herd", "--limit", "3", "--manager", herd.url)
    row = lines(sparkherd(*command).out)[1]
    assert (row[0], row[3:5], row[-2:]) == ("2", ["12", "ms"], ["w-1", "joined"])
    assert json.loads(sparkherd(*command, "--json").out) == answer


def test_tasks_describe(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """How it is doing, and its definition in the form of a file."""
    herd.on("GET", "/v1/groups/herd/tasks/late", {"error": "NONE", **task("late")})
    command = ("tasks", "describe", "late", "--group", "herd", "--manager", herd.url)
    assert sparkherd(*command).out.endswith("\ndefinition:\n  entrypoint: a:b\n")
    assert json.loads(sparkherd(*command, "--json").out)["definition"] == {"entrypoint": "a:b"}
    query = {"sql": "SELECT a\nFROM source\n"}
    herd.on("GET", "/v1/groups/herd/tasks/late", {"error": "NONE", **task("late", definition=query)})
    assert sparkherd(*command).out.endswith("definition:\n  sql: |\n    SELECT a\n    FROM source\n")


def test_json_is_what_the_manager_said(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Fields that this version does not know are passed on, too."""
    listed = herd.answers["GET", "/v1/groups/herd/tasks"][1] | {"news": [1]}
    herd.on("GET", "/v1/groups/herd/tasks", listed)
    done = sparkherd("tasks", "list", "--json", "--group", "herd", "--manager", herd.url)
    assert json.loads(done.out) == listed
    status = sparkherd("tasks", "status", "late", "--json", "--group", "herd", "--manager", herd.url)
    assert json.loads(status.out) == [herd.answers["GET", "/v1/groups/herd/tasks/late/status"][1]]


def test_a_long_list_is_asked_for_in_pages(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """The table goes through all of them; as JSON they are the one document that the API would answer."""
    path = "/v1/groups/herd/tasks"
    first = {"error": "NONE", "tasks": [task("a"), task("b")], "tasks_revision": 4, "next": "b", "etag": "x"}
    second = {"error": "NONE", "tasks": [], "tasks_revision": 5, "next": "b&b", "etag": "y"}
    last = {"error": "NONE", "tasks": [task("c")], "tasks_revision": 6, "next": None, "etag": "z"}
    manager.on("GET", f"{path}?limit=1000", first)
    manager.on("GET", f"{path}?limit=1000&after=b", second)
    manager.on("GET", f"{path}?limit=1000&after=b%26b", last)
    out = sparkherd("tasks", "list", "--group", "herd", "--manager", manager.url).out
    assert [line.split()[0] for line in out.splitlines()] == ["TASK", "a", "b", "c"]
    done = sparkherd("tasks", "list", "--json", "--group", "herd", "--manager", manager.url)
    assert json.loads(done.out) == first | {"tasks": [task("a"), task("b"), task("c")], "next": None}


def test_managers_list(sparkherd: Callable[..., Run], manager: ScriptedManager) -> None:
    """Who lives, with how many slots, and for how long; as JSON what the manager said, every slot."""
    document = {
        "error": "NONE",
        "managers": [
            {
                "id": "a",
                "url": "http://a",
                "alive": True,
                "slots": 2,
                "lease_left_ms": 2500,
                "started_at_ms": 1,
            },
            {
                "id": "b",
                "url": "http://b",
                "alive": False,
                "slots": 0,
                "lease_left_ms": -7,
                "started_at_ms": 1,
            },
        ],
        "slots": [{"slot": 0, "epoch": 3, "manager": "a"}, {"slot": 1, "epoch": 9, "manager": "a"}],
    }
    manager.on("GET", "/v1/managers", document)
    assert lines(sparkherd("managers", "list", "--manager", manager.url).out) == [
        ["MANAGER", "URL", "ALIVE", "SLOTS", "HIGHEST", "EPOCH", "LEASE", "LEFT"],
        ["a", "http://a", "yes", "2", "9", "2500ms"],
        ["b", "http://b", "no", "0", "-", "0ms"],
    ]
    assert json.loads(sparkherd("managers", "list", "--json", "--manager", manager.url).out) == document


def test_several_managers_may_be_named_in_any_form(
    sparkherd: Callable[..., Run], herd: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated, with commas, or in the environment: the first one that answers does."""
    nobody = "http://127.0.0.1:1"
    assert sparkherd("groups", "list", "--manager", nobody, "--manager", herd.url).code == 0
    assert sparkherd("groups", "list", "--manager", f"{nobody}, {herd.url}").code == 0
    assert sparkherd("groups", "list", "--manager", nobody).code == 1
    monkeypatch.setenv("SPARKHERD_MANAGER", f"{nobody},{herd.url}")
    assert sparkherd("groups", "list").code == 0
