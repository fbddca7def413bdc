from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import sqlglot

from definition.sql.check import MAX_LENGTH, sql_fault
from tests.unit.definition.sql_accepted import ACCEPTED
from tests.unit.definition.sql_refused import REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_takes_is_accepted(sql: str) -> None:
    """However unusual it is."""
    assert sql_fault(sql) is None


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_certain_not_to_parse_is_refused_in_one_line(sql: str) -> None:
    """The mistakes that people make."""
    fault = sql_fault(sql)
    assert fault
    assert "\n" not in fault


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("", "is empty"),
        (" ; -- nothing", "is empty"),
        ("SELECT", "is no whole query near 'SELECT' (line 1, column 1)"),
        ("SELEC a FROM source", "begins with SELEC, as no statement does; did you mean SELECT?"),
        ("hello", "begins with HELLO, as no statement does"),
        ("SELECT a,\n  b c d\nFROM source", "does not parse near 'd' (line 2, column 7)"),
        ("SELECT a\nFROM source bar baz", "does not parse near 'baz' (line 2, column 17)"),
        ("SELECT a,, b FROM source", "does not parse near ',' (line 1, column 9)"),
        ("SELECT f(a FROM source", "has a ( that is not closed near '(' (line 1, column 9)"),
        ("SELECT a] FROM source", "has a ] that closes nothing near ']' (line 1, column 9)"),
        ("SELECT 'a FROM source", "has a ' that is not closed near \"'\" (line 1, column 8)"),
        ("SELECT a /* b", "has a /* that is not closed near '/*' (line 1, column 10)"),
        ("SELECT 1; SELECT 2", "holds more than one statement near ';' (line 1, column 9)"),
    ],
)
def test_the_fault_names_the_place(sql: str, fault: str) -> None:
    """What the user reads leads to what to change."""
    assert sql_fault(sql) == fault


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM source |> SOMETHING NEW WITH b",
        "SELECT a FROM source FRESHLY INTERVAL 3 OF",
        "SET spark.x = it's raw; text (",
        "BEGIN SELECT 1; SELECT 2; END",
        "CREATE FLOW f AS $$ it's raw $$",
        "SELECT " + "(" * 500 + "a" + ")" * 500 + " b c d",
        "SELECT " + "a, " * MAX_LENGTH + "b c d",
    ],
)
def test_where_the_check_is_unsure_it_accepts(sql: str) -> None:
    """New syntax, raw text, and what would take too long."""
    assert sql_fault(sql) is None


def test_the_parsers_own_trouble_is_no_fault_of_the_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in sqlglot must not keep a task out."""

    def breaks(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(sqlglot, "parse_one", breaks)
    assert sql_fault("SELECT a b c FROM source") is None


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        (
            "SELECT " + ", ".join(f"c{at} d e" for at in range(900)) + " FROM source",
            "does not parse near 'e' (line 1, column 13)",
        ),
        ("SELECT " + "f(" * 19 + "a" + ")" * 19 + " b c d", "does not parse near 'c' (line 1, column 69)"),
        ("SELECT " + "f(" * 1_000 + "a" + ")" * 1_000 + " b c d", None),
        ("SELECT a WHERE " + "AND OR NOT " * 100, None),
        ("SELECT a WHERE " + "a AND OR b AND NOT " * 5_000, None),
        ("SELECT '" + "a''" * 30_000, "has a ' that is not closed near \"'\" (line 1, column 8)"),
        ("SELECT " + "/*" * 40_000, "has a /* that is not closed near '/*' (line 1, column 8)"),
        ("SELECT " + "`" * 99_001, "has a ` that is not closed near '`' (line 1, column 8)"),
        ("x" * 10_000_000, None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_its_work_grows_with_the_length_alone(sql: str, fault: str | None) -> None:
    """Whoever sends a task cannot keep the manager busy with it, whatever it nests, opens or repeats."""
    sql_fault("SELECT a b c FROM source")  # whatever is imported late is there now
    found: list[str | None] = []
    assert _calls(lambda: found.append(sql_fault(sql))) < 100 * len(sql)
    assert found == [fault]


def _calls(run: Callable[[], object]) -> int:
    """How many functions `run` calls, and these in turn: its work, on any machine the same."""
    calls = 0

    def count(_frame: object, event: str, _about: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


def test_the_parser_is_imported_only_for_a_check() -> None:
    """A manager without tasks and a worker never need it."""
    code = "import sys, definition.check; sys.exit(bool({'sqlglot', 'sqlalchemy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
