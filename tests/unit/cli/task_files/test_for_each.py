"""`for_each`: what an entry stands for, and where a bad one is wrong."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.task_files.for_each import expand, written
from cli.task_files.reader import TaskFileError, read_task_file

if TYPE_CHECKING:
    from pathlib import Path

names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def entries(entry: dict[str, Any]) -> list[Any]:
    """The entries that a good one stands for."""
    expanded, problems = expand(entry, "tasks[0]")
    assert problems == []
    return [each.entry for each in expanded]


def problems(entry: dict[str, Any]) -> list[str]:
    """What is wrong with a bad one."""
    return [f"{each.path}: {each.message}" for each in expand(entry, "tasks[0]")[1]]


def test_a_list_gives_a_task_a_row() -> None:
    """Values are put into names, deep into definitions and into keys, in the order of the rows."""
    template = {"task": "d-${each.c}", "definition": {"a": [{"p": "in/${each.c}"}], "k${each.c}": 1}}
    assert entries({"for_each": [{"c": "B6"}, {"c": "AA"}], **template}) == [
        {"task": "d-B6", "definition": {"a": [{"p": "in/B6"}], "kB6": 1}},
        {"task": "d-AA", "definition": {"a": [{"p": "in/AA"}], "kAA": 1}},
    ]


def test_a_mapping_gives_every_combination() -> None:
    """The last name varies fastest, as in nested loops."""
    for_each = {"a": [1, 2], "b": ["x", "y"]}
    made = entries({"for_each": for_each, "task": "${each.a}-${each.b}"})
    assert [each["task"] for each in made] == ["1-x", "1-y", "2-x", "2-y"]


def test_a_text_that_is_a_placeholder_becomes_the_value_itself() -> None:
    """Numbers stay numbers, mappings mappings; within a text they are written as JSON writes them."""
    row = {"n": 3, "flag": True, "nil": None, "conf": {"a": "1"}}
    template = {"n": "${each.n}", "conf": "${each.conf}", "text": "${each.n} ${each.flag} ${each.nil}"}
    assert entries({"for_each": [row], **template}) == [{"n": 3, "conf": {"a": "1"}, "text": "3 true null"}]


def test_other_dollars_are_left_alone() -> None:
    """What Spark or a worker replaces later goes through; `$$` keeps a text of ours from being replaced."""
    texts = ["${env:HOME}", "${x}", "$", "${", "$5", "$${each.c}", "$${c}", "$${x}", "${each.c}}"]
    filled = entries({"for_each": [{"c": "${c}"}], "texts": texts})[0]["texts"]
    assert filled == ["${env:HOME}", "${x}", "$", "${", "$5", "${each.c}", "${c}", "$${x}", "${c}}"]


def test_without_for_each_nothing_is_a_placeholder() -> None:
    """An entry of its own may say `${each.x}` to Spark."""
    assert entries({"task": "${each.x}"}) == [{"task": "${each.x}"}]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"for_each": [{"carrier": 1}], "definition": {"sql": ["${each.carier}"]}},
            "tasks[0].definition.sql[0]: ${each.carier} is not in for_each; did you mean ${each.carrier}?",
        ),
        (
            {"for_each": {"a": [1, 2], "b": [3, 4]}, "task": "${each.zzz}"},
            "tasks[0].task: ${each.zzz} is not in for_each; known are ${each.a}, ${each.b}",
        ),
        ({"for_each": [{"a": 1}, {"b": 1}], "x": "${each.a}"}, "tasks[0].x: ${each.a} is not in for_each[1]"),
        (
            {"for_each": [{"a": 1}], "x": "${a}"},
            "tasks[0].x: write ${each.a}, or $${a} for the text ${a} itself",
        ),
        (
            {"for_each": [{"a": [1]}], "x": "-${each.a}"},
            "tasks[0].x: ${each.a} is no plain value, it cannot stand within a text",
        ),
        (
            {"for_each": [{"a": "x"}], "d": {"x": 1, "${each.a}": 2}},
            "tasks[0].d[\"${each.a}\"]: becomes 'x', which is there already",
        ),
        ({"for_each": 3}, "tasks[0].for_each: must be a list of mappings, or a mapping of lists"),
        ({"for_each": {}}, "tasks[0].for_each: is empty; name a list, or leave it out"),
        (
            {"for_each": ["AA"]},
            "tasks[0].for_each[0]: must be a mapping; plain values go as for_each: {NAME: [...]}",
        ),
        ({"for_each": {"a": 3}}, "tasks[0].for_each.a: must be a list, of which every value gives tasks"),
        (
            {"for_each": [{"a b": 3}]},
            'tasks[0].for_each[0]["a b"]: is no name: letters, digits and _, no digit first',
        ),
        (
            {"for_each": {name: list(range(100)) for name in "abc"}},
            "tasks[0].for_each: stands for 1,000,000 tasks, the most is 100,000",
        ),
    ],
)
def test_a_bad_entry_says_where(entry: dict[str, Any], expected: str) -> None:
    """One problem, once, with its place in the file, however many rows there are."""
    assert problems(entry) == [expected]


def test_names_must_differ_after_the_expansion(tmp_path: Path) -> None:
    """The message names both places; YAML's anchors and merge keys work beside `for_each`."""
    path = tmp_path / "tasks.yaml"
    path.write_text(
        "x-source: &source {format: json, options: {path: 'in/${each.c}'}}\n"
        "tasks:\n"
        "  - {task: d-1, definition: {}}\n"
        "  - task: d-${each.c}\n"
        "    for_each: [{c: 1}, {c: 2}]\n"
        "    definition: {source: {<<: *source, format: csv}}\n"
    )
    with pytest.raises(TaskFileError) as caught:
        read_task_file(path)
    assert [each.message for each in caught.value.problems] == ["task 'd-1' is there already, from tasks[0]"]
    assert caught.value.problems[0].path == f"{path}: tasks[1] (for_each[0])"
    path.write_text(path.read_text().replace("d-1,", "d-9,"))
    second = read_task_file(path).tasks[1]
    assert second.definition == {"source": {"format": "csv", "options": {"path": "in/1"}}}


@given(st.dictionaries(names, st.lists(scalars, max_size=4), min_size=1, max_size=3), documents)
def test_a_product_has_every_combination_once(for_each: dict[str, list[Any]], rest: Any) -> None:
    """As many tasks as the lengths multiply to, in order; what has no placeholder comes out as it went in."""
    quiet = not re.search(r"\$\{", repr(rest))
    made, wrong = expand(
        {"for_each": for_each, "row": {n: f"${{each.{n}}}" for n in for_each}, "z": rest}, "t"
    )
    assert len(made) == prod(map(len, for_each.values()))
    if quiet:
        assert wrong == []
        assert all(each.entry["z"] == rest for each in made)
    rows = [tuple(each.entry["row"].values()) for each in made]
    loops: list[tuple[Any, ...]] = [()]
    for values in for_each.values():
        loops = [(*row, value) for row in loops for value in values]
    assert rows == loops


@given(st.dictionaries(names, scalars, min_size=1, max_size=4), st.text(max_size=10), st.data())
def test_a_value_is_written_once_and_not_read_again(
    row: dict[str, Any], text: str, data: st.DataObject
) -> None:
    """Whatever a value looks like, a placeholder of its own even, it stands in the text as it is."""
    name = data.draw(st.sampled_from(sorted(row)))
    text = text.replace("$", "")
    made, wrong = expand({"for_each": [row], "x": f"<{text}${{each.{name}}}>"}, "t")
    assert wrong == []
    assert made[0].entry["x"] == f"<{text}{written(row[name])}>"


@given(documents.map(str), names)
def test_escaping_undoes_itself(text: str, name: str) -> None:
    """A text with `$$` before each placeholder comes out with one dollar less, and nothing replaced."""
    text = text.replace("$", "")
    made, wrong = expand({"for_each": [{name: 1}], "x": f"{text}$${{each.{name}}}"}, "t")
    assert (made[0].entry["x"], wrong) == (f"{text}${{each.{name}}}", [])
