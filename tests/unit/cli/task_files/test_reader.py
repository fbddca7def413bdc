"""tasks.yaml: what a good one holds, and where a bad one is wrong."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from cli.task_files.reader import TaskFileError, read_task_file
from protocol.states import Target

if TYPE_CHECKING:
    from pathlib import Path

TOO_LONG = "Exceeds the limit (4300 digits) for integer string conversion"
GOOD = """
group: flights
tasks:
  - task: delays
    definition: {entrypoint: "a:b"}
  - task: paused
    target: PAUSED
    definition: {entrypoint: "a:c"}
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    """Every problem of a file with that text, without the file's folder."""
    path = tmp_path / "tasks.yaml"
    path.write_text(text)
    with pytest.raises(TaskFileError) as caught:
        read_task_file(path)
    return [f"{p.path.removeprefix(str(tmp_path) + '/')}: {p.message}" for p in caught.value.problems]


def test_good_file(tmp_path: Path) -> None:
    """Names, targets and definitions come out as they stand."""
    path = tmp_path / "tasks.yaml"
    path.write_text(GOOD)
    file = read_task_file(path)
    assert file.group == "flights"
    assert [(t.task, t.target, t.definition["entrypoint"]) for t in file.tasks] == [
        ("delays", None, "a:b"),
        ("paused", Target.PAUSED, "a:c"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tasks: [", "tasks.yaml:1:9: not YAML: expected the node content, but found '<stream end>'"),
        ("tasks: []\ntasks: []", "tasks.yaml:2:1: not YAML: key 'tasks' twice"),
        ("- a", "tasks.yaml: Expected object, got array"),
        ("", "tasks.yaml: Expected object, got null"),
        ("a: &a [*a]", "tasks.yaml: has an anchor that contains itself, or nests too deep"),
        ("tasks: []\n? [1, 2]\n: 3", "tasks.yaml:2:3: not YAML: found unhashable key"),
        (
            "tasks: [{task: a, definition: {true: 1}}]",
            "tasks.yaml: has a key that is neither a text nor a number",
        ),
        (
            'tasks: [{task: a, definition: {sql: "\\uD800"}}]',
            "tasks.yaml: has a text with '\\ud800', half of a surrogate pair, which is no character",
        ),
        (
            f"tasks: [{'9' * 5000}]",
            f"tasks.yaml: has a value that is none: {TOO_LONG}: value has 5000 digits",
        ),
        (f"tasks: [0x{'f' * 5000}]", f"tasks.yaml: has a value that is none: {TOO_LONG}"),
        ("tasks: [2001-99-99]", "tasks.yaml: has a value that is none: month must be in 1..12"),
        ("group: g", "tasks.yaml: Object missing required field tasks"),
        ("tasks: []\nfoo: 1", "tasks.yaml: Object contains unknown field foo"),
        ("tasks: []\ngroup: a b", "tasks.yaml: group: 'a b' is not a name"),
        (
            "tasks: [{task: a, definition: {}}, {task: a, definition: {}}]",
            "tasks.yaml: tasks[1]: task 'a' is there already, from tasks[0]",
        ),
        (
            "tasks: [{task: a, definition: {}, target: GONE}]",
            "tasks.yaml: tasks[0].target: Invalid enum value 'GONE'",
        ),
    ],
)
def test_bad_files_say_where(tmp_path: Path, text: str, expected: str) -> None:
    """Each fault comes with its place in the file."""
    assert problems(tmp_path, text) == [expected]


LEVELS = "abcdefghi"
AFTER = list(pairwise(LEVELS))


@pytest.mark.parametrize(
    "lines",
    [
        ["x-a: &a [1]", *(f"x-{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in AFTER)],
        [f"x-a: &a {'x' * 100_000}", f"x-b: [{', '.join(['*a'] * 400)}]"],
        ["x-a: &a {k: 1}", *(f"x-{b}: &{b} {{<<: [{', '.join([f'*{a}'] * 10)}]}}" for a, b in AFTER)],
    ],
    ids=["lists", "texts", "merges"],
)
def test_aliases_that_would_be_too_large_are_not_written_out(tmp_path: Path, lines: list[str]) -> None:
    """A few lines that stand for far too many values or characters are refused at once."""
    assert problems(tmp_path, "\n".join([*lines, "tasks: []"])) == [
        "tasks.yaml: not YAML: its aliases, written out, are too large"
    ]


def test_aliases_may_stand_for_much(tmp_path: Path) -> None:
    """A definition's defaults in each of a thousand tasks are no trouble."""
    entry = "  - {task: t%d, definition: {<<: *x, entrypoint: 'a:b'}}"
    lines = ["x-defaults: &x {sql: %s}" % ("s" * 5000), "tasks:", *(entry % n for n in range(1000))]
    path = tmp_path / "tasks.yaml"
    path.write_text("\n".join(lines))
    assert len(read_task_file(path).tasks) == 1000


def test_all_entries_are_looked_at(tmp_path: Path) -> None:
    """One bad entry does not hide the next."""
    found = problems(tmp_path, "tasks: [{task: a}, 3, {task: b, definition: {}, extra: 1}]")
    assert found == [
        "tasks.yaml: tasks[0]: Object missing required field definition",
        "tasks.yaml: tasks[1]: Expected object, got int",
        "tasks.yaml: tasks[2]: Object contains unknown field extra",
    ]


def test_missing_and_binary_files(tmp_path: Path) -> None:
    """A file that cannot be read is one problem of its own."""
    with pytest.raises(TaskFileError, match="No such file"):
        read_task_file(tmp_path / "missing.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskFileError, match="not UTF-8"):
        read_task_file(tmp_path / "binary.yaml")
    (tmp_path / "control.yaml").write_bytes(b"a: \x00")
    with pytest.raises(TaskFileError, match="not YAML"):
        read_task_file(tmp_path / "control.yaml")
