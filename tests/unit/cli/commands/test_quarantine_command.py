"""tasks quarantine: what it asks, what it shows, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.client import patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

PLACE = "/v1/groups/herd/tasks/delays/quarantine"
LISTED = f"{PLACE}?limit=20&timeout_ms=30000"
SHOWN = f"{PLACE}/rows/0-41-3?timeout_ms=30000"
ROW: dict[str, Any] = {
    "id": "0-41-3",
    "batch_id": 41,
    "token": 7,
    "at_ms": 0,
    "reason": "violation",
    "name": "delay_is_known",
    "error": "dep_delay IS NOT NULL",
    "form": "row",
    "raw": '{"carrier": "UA", "note": "' + "long " * 30 + '"}',
    "encoding": "utf-8",
    "origin": {"topic": "delays", "partition": 2, "offset": None},
}
FOUND: dict[str, Any] = {
    "error": "NONE",
    "worker": "anna-1",
    "rows": [ROW],
    "total": 17,
    "replayed": 0,
    "discarded": 0,
    "stayed": 0,
    "notes": ["the rest is older"],
}
NOTHING = {**FOUND, "rows": [], "total": 0, "notes": []}


@pytest.fixture
def run(sparkherd: Callable[..., Run], herd: ScriptedManager) -> Callable[..., Run]:
    def quarantine(verb: str, *more: str) -> Run:
        return sparkherd(
            "tasks", "quarantine", verb, "delays", *more, "--group", "herd", "--manager", herd.url
        )

    return quarantine


def test_rows_are_listed(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """A line each, of which the row is cut; and how many there are in all."""
    herd.on("GET", LISTED, FOUND)
    done = run("list")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "ID AT REASON NAME FROM ROW"
    assert lines[1].startswith("0-41-3 ")
    assert "violation delay_is_known topic=delays partition=2 {" in lines[1]
    assert lines[1].endswith("…")
    assert lines[2:] == ["", "1 of 17 rows", "note: the rest is older"]
    assert done.code == 0


def test_filters_are_passed_on(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """In the query string, as the API has them."""
    herd.on("GET", f"{PLACE}?limit=5&reason=refused&name=a+b&timeout_ms=2000", NOTHING)
    done = run("list", "--limit", "5", "--reason", "refused", "--name", "a b", "--timeout", "2")
    assert (done.out, done.code) == ("0 of 0 rows\n", 0)


def test_one_row_is_shown(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """With what was wrong, and what it was."""
    herd.on("GET", SHOWN, FOUND)
    done = run("show", "0-41-3")
    assert "error:   dep_delay IS NOT NULL\n" in done.out
    assert '\nrow:\n{\n  "carrier": "UA",\n' in done.out


def test_what_a_row_has_steers_no_terminal(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """It is from whoever may write to a topic."""
    herd.on("GET", SHOWN, {**FOUND, "rows": [{**ROW, "form": "line", "raw": "\x1b[2J", "error": "\x1b[1m"}]})
    done = run("show", "0-41-3")
    assert "\x1b" not in done.out
    assert "line:\n\ufffd[2J" in done.out


@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_rows_are_named_or_all(run: Callable[..., Run], herd: ScriptedManager, verb: str) -> None:
    """And what became of them is told."""
    herd.on("POST", f"{PLACE}/{verb}", {**NOTHING, "replayed": 2, "discarded": 1})
    done = run(verb, "0-41-3", "0-41-7", "--timeout", "120")
    assert (done.out, done.code) == ("delays: 2 played again, 1 discarded\n", 0)
    run(verb, "--all", "--reason", "violation")
    filters = {"reason": None, "name": None}
    assert [body for _, body in herd.asked("POST")] == [
        {"ids": ["0-41-3", "0-41-7"], "all": False, **filters, "timeout_ms": 120_000},
        {"ids": [], "all": True, **filters, "reason": "violation", "timeout_ms": 30_000},
    ]


@pytest.mark.parametrize("more", [(), ("0-41-3", "--all"), ("0-41-3", "--reason", "refused")])
def test_nobody_means_all_by_naming_none(
    run: Callable[..., Run], herd: ScriptedManager, more: tuple[str, ...]
) -> None:
    """Nothing is asked for then."""
    done = run("discard", *more)
    assert (done.code, herd.asked("POST")) == (2, [])
    assert "--all" in done.err


def test_rows_that_stay_are_exit_code_1(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """A script is not to believe that they are in the sink."""
    herd.on("POST", f"{PLACE}/replay", {**NOTHING, "stayed": 1, "notes": ["0-41-3 violates it still"]})
    done = run("replay", "0-41-3")
    assert (done.out, done.code) == ("delays: 1 stayed\nnote: 0-41-3 violates it still\n", 1)


def test_nothing_that_was_meant_is_there(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """As after a replay of which the answer was lost: that is as it should be."""
    herd.on("POST", f"{PLACE}/replay", NOTHING)
    done = run("replay", "0-41-3")
    assert (done.out, done.code) == ("delays: there are no such rows\n", 0)


def test_a_refusal_is_exit_code_1(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """With what to do; who has nobody to ask is not asked again."""
    refusal = {"error": "TASK_NOT_OWNED", "message": "no worker has task delays", "retriable": True}
    herd.on("POST", f"{PLACE}/replay", refusal, 409)
    done = run("replay", "--all")
    assert (done.code, done.err) == (1, "sparkherd: TASK_NOT_OWNED: no worker has task delays\n")
    assert len(herd.asked("POST")) == 1


def test_json_is_what_the_api_answers(run: Callable[..., Run], herd: ScriptedManager) -> None:
    """For scripts, whole."""
    herd.on("GET", LISTED, FOUND)
    herd.on("GET", SHOWN, FOUND)
    herd.on("POST", f"{PLACE}/discard", NOTHING)
    assert json.loads(run("list", "--json").out) == FOUND
    assert json.loads(run("show", "0-41-3", "--json").out) == FOUND
    assert json.loads(run("discard", "--all", "--json").out) == NOTHING


def test_it_comes_again_while_the_worker_is_busy(
    run: Callable[..., Run], herd: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another such request, or the group with a rebalance."""
    busy = {"error": "QUARANTINE_BUSY", "message": "busy", "retriable": True}
    herd.on("GET", LISTED, busy, 409)
    monkeypatch.setattr(patience, "sleep", lambda _: herd.on("GET", LISTED, NOTHING))
    assert run("list").code == 0
    assert len(herd.asked("GET")) == 2
