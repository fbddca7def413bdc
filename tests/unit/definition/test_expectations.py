"""What a definition may expect of the rows of its task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definition.check import MOST_LOOKED_AT, check_definition
from definition.document import Definition, DefinitionError, parse_definition
from definition.expectations import MOST_EXPECTATIONS, MOST_WHERE
from definition.sql.volatile import volatile_function

DELAY: dict[str, Any] = {"name": "delay_known", "where": "delay IS NOT NULL"}
TASK: dict[str, Any] = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
COUNT: dict[str, Any] = {**TASK, "sql": "SELECT count(*) FROM source"}


def read(*expect: Any, task: dict[str, Any] = TASK) -> Definition:
    return parse_definition(json.dumps({**task, "expect": expect}).encode())


def problems(*expect: Any, task: dict[str, Any] = TASK) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as refusal:
        read(*expect, task=task)
    return [(problem.path, problem.message) for problem in refusal.value.problems]


def test_a_violation_fails_its_batch_unless_told_otherwise() -> None:
    """Nothing is left out without a word."""
    [expectation] = read(DELAY).expect
    assert (expectation.on_violation, expectation.sifts) == ("fail", False)
    [expectation] = read({**DELAY, "on_violation": "drop"}).expect
    assert expectation.sifts


@pytest.mark.parametrize("name", ["", "a b", "1a", "a" * 101, "a\n", 'a"', "a-b"])
def test_a_name_is_one_that_metrics_and_causes_can_bear(name: str) -> None:
    """As SQL and Python have them."""
    [(path, message)] = problems({**DELAY, "name": name})
    assert path == "expect[0].name"
    assert message.startswith("must be a name of letters, digits and _")


@pytest.mark.parametrize("name", ["unreadable", "Refused"])
def test_a_name_is_not_one_by_which_other_rows_are_counted(name: str) -> None:
    """A count would be of both."""
    [(path, message)] = problems({**DELAY, "name": name})
    assert (path, message[:30]) == ("expect[0].name", "is what other rows are counted")


def test_two_of_a_name_are_refused() -> None:
    """Also if they differ in case only, which people do not tell apart."""
    twice = problems(DELAY, {**DELAY, "name": "other"}, {**DELAY, "name": "DELAY_known"})
    assert twice == [("expect[2].name", "is also the name of expect[0]")]


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"where": " "}, "expect[0].where", "must not be empty"),
        ({"where": "a = '${env:A}'"}, "expect[0].where", "takes no ${env:NAME}"),
        ({"on_violation": "warn"}, "expect[0].on_violation", "expected one of fail, drop"),
        ({"when": "a"}, "expect[0].when", "unknown key"),
    ],
)
def test_what_is_wrong_in_one_names_its_field(fields: dict[str, Any], path: str, message: str) -> None:
    """And nothing else."""
    [(where, told)] = problems({**DELAY, **fields})
    assert where == path
    assert message in told


def test_what_cannot_be_read_hides_no_other_problem() -> None:
    """The ones between several are looked for among those that can be read."""
    found = problems({**DELAY, "name": 3}, DELAY, {**DELAY, "on_violation": 1})
    assert [path for path, _ in found] == ["expect[0].name", "expect[2].on_violation", "expect[2].name"]


def test_there_is_one_bit_for_each() -> None:
    """Of a BIGINT."""
    many = [{**DELAY, "name": f"e{at}"} for at in range(MOST_EXPECTATIONS + 1)]
    assert problems(*many) == [("expect", f"has more than {MOST_EXPECTATIONS} expectations")]
    assert len(read(*many[1:]).expect) == MOST_EXPECTATIONS


def test_an_entry_point_has_no_result_to_expect_anything_of() -> None:
    """It writes what it likes."""
    [(path, message)] = problems(DELAY, task={"entrypoint": "a:b"})
    assert path == "expect"
    assert "entrypoint" in message


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_rows_are_left_out_of_an_appending_query_only(mode: str) -> None:
    """Of any other the sink may have what a former batch wrote; to fail is possible."""
    task = {**COUNT, "output_mode": mode}
    [(path, message)] = problems({**DELAY, "on_violation": "drop"}, task=task)
    assert path == "expect[0].on_violation"
    assert "append" in message
    assert read(DELAY, task=task).expect


def test_other_expectations_are_another_query() -> None:
    """So a change of them starts the query again."""
    assert not read(DELAY).runs_like(read({**DELAY, "where": "delay > 0"}))


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("delay >", "does not parse near '>'"),
        ("delay > 0) OR (true", "has a ) that closes nothing near ')' (line 1, column 10)"),
        ("delay > 0; DROP TABLE a", "holds more than one statement"),
        ("carrier = 'UA", "has a ' that is not closed"),
        ("delay > 0\nAND AND carrier = 'UA'", "does not parse near 'AND' (line 2, column 5)"),
        ("-- nothing", "is empty"),
    ],
)
def test_a_condition_that_does_not_parse_is_refused(where: str, fault: str) -> None:
    """Before a worker sees it, with the place in it."""
    document = json.dumps({**TASK, "expect": [DELAY, {**DELAY, "name": "b", "where": where}]}).encode()
    found = check_definition(document)
    assert isinstance(found, tuple)
    [problem] = found
    assert problem.path == "expect[1].where"
    assert problem.message.startswith(fault)


@pytest.mark.parametrize(
    "where",
    [
        "is_late",
        "delay BETWEEN 0 AND 100 -- minutes",
        "carrier IN ('UA', 'AA') AND NOT (delay <=> NULL)",
        "size(filter(legs, x -> x.delay > 0)) = 0",
        "a:b::int > 3",
        "`a b` RLIKE '^[a-z]+$'",
        "order IS NOT NULL",
    ],
)
def test_a_condition_of_spark_is_accepted(where: str) -> None:
    """A single word and a comment at the end, too."""
    document = json.dumps({**TASK, "expect": [{**DELAY, "where": where}]}).encode()
    assert isinstance(check_definition(document), Definition)


@pytest.mark.parametrize("expect", [3, [3], {"a": 1}, [{"where": 3}], [[DELAY]]])
def test_what_is_no_expectation_hides_no_fault_of_the_sql(expect: Any) -> None:
    """All that is wrong is told at once."""
    found = check_definition(json.dumps({**TASK, "sql": "SELECT", "expect": expect}).encode())
    assert isinstance(found, tuple)
    assert {problem.path.partition("[")[0] for problem in found} == {"sql", "expect"}


def test_a_condition_has_a_length_that_a_cause_can_bear() -> None:
    """The bound is included; one that is longer is not even parsed."""
    where = f"id = '{'x' * (MOST_WHERE - 7)}'"
    assert len(read({**DELAY, "where": where}).expect[0].where) == MOST_WHERE
    document = json.dumps({**TASK, "expect": [{**DELAY, "where": f"{where} >"}]}).encode()
    told = check_definition(document)
    assert isinstance(told, tuple)
    assert [(each.path, each.message) for each in told] == [
        ("expect[0].where", "has more than 2,000 characters")
    ]


def test_of_very_many_conditions_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager does nothing else meanwhile; the worker looks at all of them."""
    looked_at = []

    def note(where: str) -> None:
        looked_at.append(where)

    monkeypatch.setattr("definition.check._condition_fault", note)
    expect = [
        {"name": f"e{at}", "where": f"id > {at} AND {'TRUE AND ' * 200}TRUE"}
        for at in range(MOST_EXPECTATIONS)
    ]
    assert isinstance(check_definition(json.dumps({**TASK, "expect": expect}).encode()), Definition)
    assert MOST_LOOKED_AT - MOST_WHERE < sum(map(len, looked_at)) <= MOST_LOOKED_AT


def test_a_condition_without_a_volatile_function_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most have none, and sixty long ones take a second."""
    monkeypatch.setattr("definition.sql.volatile.tokens", lambda _: pytest.fail("it was"))
    assert volatile_function("id > 5 AND carrier IN ('UA', 'AA')") is None
