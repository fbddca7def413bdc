"""What a check has found, under the bounds of a result."""

from __future__ import annotations

import msgspec

from protocol.messages.checks import (
    MAX_TYPE_LENGTH,
    MOST_COLUMNS,
    CheckResult,
)
from protocol.messages.errands import MAX_RESULT_BYTES, MAX_SAID_LENGTH, MOST_SAID
from protocol.messages.tasks import Problem
from worker.checks.findings import MOST_ROW_BYTES, Findings


def test_a_problem_is_where_it_is_said_to_be() -> None:
    """Whatever its text begins with, of which only the first line is told."""
    findings = Findings()
    findings.problem("source", "options: is what a library says\nwith a trace")
    findings.problem('sink.options["a b"]', "is empty")
    assert findings.result().problems == (
        Problem("source", "options: is what a library says"),
        Problem('sink.options["a b"]', "is empty"),
    )


def test_there_is_an_end_to_what_is_said() -> None:
    """However many problems there are, and however long one is."""
    findings = Findings()
    for _ in range(MOST_SAID + 1):
        findings.problem("sql", "x" * (MAX_SAID_LENGTH + 1))
    problems = findings.result().problems
    assert (len(problems), len(problems[0].message)) == (MOST_SAID, MAX_SAID_LENGTH)


def test_there_is_an_end_to_columns() -> None:
    """It is said how many more there are."""
    findings = Findings()
    findings.columns([("c", "x" * 100)] * MOST_COLUMNS + [("d", "bigint")] * 2)
    found = findings.result()
    assert found.columns is not None
    assert [each.name for each in found.columns] == ["c"] * MOST_COLUMNS
    assert found.notes[0] == Problem("", f"{MOST_COLUMNS + 2} columns are 2 more than are shown")


def test_there_is_an_end_to_a_type() -> None:
    """That of a struct of structs may be of any length; so may a name."""
    findings = Findings()
    findings.columns([("n" * 2000, "x" * (MAX_TYPE_LENGTH + 1))])
    [found] = findings.result().columns or ()
    assert (len(found.name), len(found.type), found.type[-2:]) == (MAX_TYPE_LENGTH, MAX_TYPE_LENGTH, "x…")


def test_rows_that_are_too_large_are_left_out() -> None:
    """Those before them are shown."""
    findings = Findings()
    row = ['"' + "x" * 1000] * 100
    findings.rows([row] * 10)
    found = findings.result()
    assert 0 < len(found.rows) == MOST_ROW_BYTES // len(msgspec.json.encode(found.rows[0]))
    assert "are left out: they are too large" in found.notes[0].message


def test_a_result_always_fits() -> None:
    """Else the manager would refuse it, and nobody would hear of anything."""
    findings = Findings()
    findings.problem("sql", "wrong")
    findings.columns([("\x01" * 900, "\x01" * 900)] * MOST_COLUMNS)
    found = findings.result()
    assert len(msgspec.json.encode(found)) < MAX_RESULT_BYTES
    assert found == CheckResult(problems=found.problems, notes=found.notes)
    assert found.problems == (Problem("sql", "wrong"),)


def test_long_names_of_sources_fit_too() -> None:
    """They stand in the place of each mistake."""
    findings = Findings()
    for number in range(MOST_SAID):
        findings.problem("sources." + "\x01" * 10_000, f"wrong {number}")
        findings.note("sources." + "\x01" * 10_000, "strange")
    found = findings.result()
    assert len(msgspec.json.encode(found)) <= MAX_RESULT_BYTES
    assert found.problems[0].message == "wrong 0"
    assert found.notes[-1] == Problem("", "what is left out is too large to be shown")
