"""`tasks.yaml`: the tasks of a group in one file.

A mapping with `group` (which `--group` overrides) and `tasks`, a list of entries with `task` (the name),
`definition` (protocol §6), if it is not to run at once, `target`, and if it stands for many, `for_each`
(`cli.task_files.for_each`). Top-level keys that begin with `x-` are for YAML anchors.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml

from cli.task_files.for_each import Expanded, expand
from configuration.yaml_loader import Loader
from protocol.errors import StartupError
from protocol.messages.tasks import Problem
from protocol.names import Name, is_legal_name
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Converted = TypeVar("Converted")

ANCHORS = "x-"
"""What the keys begin with that are there for YAML anchors only."""


class TaskEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task as the file has it."""

    task: Name
    definition: dict[str, Any]
    target: Target | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tasks: list[Any]
    group: str | None = None


class TaskFile(msgspec.Struct, frozen=True):
    """A file that was read, and whose own shape is in order; its definitions are for the manager to judge."""

    group: str | None
    tasks: tuple[TaskEntry, ...]


class TaskFileError(StartupError):
    """The file cannot be used; carries every problem, each with its place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{each.path}: {each.message}" for each in problems))
        self.problems = tuple(problems)


def read_task_file(path: Path) -> TaskFile:
    """The file's tasks; raises `TaskFileError` with all that is wrong with its shape."""
    document = _convert(_without_anchors(parse(path)), _Document, str(path))
    tasks: list[TaskEntry] = []
    places: list[str] = []
    problems = list(_group_problems(document.group))
    for expanded in _expanded(document.tasks, problems):
        try:
            tasks.append(_convert(expanded.entry, TaskEntry, expanded.place))
            places.append(expanded.place)
        except TaskFileError as error:
            problems.extend(error.problems)
    problems.extend(_clashes(tasks, places))
    if problems:
        raise TaskFileError([Problem(f"{path}: {each.path}", each.message) for each in problems])
    return TaskFile(document.group, tuple(tasks))


def _without_anchors(document: Any) -> Any:
    """The document without the keys that only hold what others refer to."""
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if not str(key).startswith(ANCHORS)}


def _expanded(entries: Sequence[Any], problems: list[Problem]) -> list[Expanded]:
    """Every entry as often as its `for_each` says; what is wrong with that goes to `problems`."""
    found: list[Expanded] = []
    for index, entry in enumerate(entries):
        expanded, wrong = expand(entry, f"tasks[{index}]")
        problems += wrong
        found += [] if wrong else expanded
    return found


def read_definition(source: Path | IO[str]) -> dict[str, Any]:
    """One definition in a file or stream of its own; raises `TaskFileError`."""
    return _convert(parse(source), dict[str, Any], _place(source))


def parse(source: Path | IO[str]) -> Any:
    """What the YAML says, as JSON has it, which knows neither dates nor keys that are no text.

    Raises:
        TaskFileError: it cannot be read, or is no YAML in UTF-8; the problem's place is the file's.
    """
    place = _place(source)
    try:
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source.read()
        document = msgspec.to_builtins(yaml.load(text, Loader=Loader), str_keys=True)  # noqa: S506 - a SafeLoader
        msgspec.json.encode(document)  # a surrogate, which YAML can escape, is in no JSON
    except yaml.MarkedYAMLError as error:
        raise TaskFileError([_yaml_problem(place, error)]) from None
    except (OSError, ValueError, yaml.YAMLError, TypeError, RecursionError) as error:
        raise TaskFileError([Problem(place, _fault(error))]) from None
    return document


def _place(source: Path | IO[str]) -> str:
    return str(source) if isinstance(source, Path) else "stdin"


def _fault(error: Exception) -> str:
    match error:
        case OSError():
            return error.strerror or str(error)
        case ValueError():
            return _not_a_value(error)
        case TypeError():
            return "has a key that is neither a text nor a number"
        case RecursionError():
            return "has an anchor that contains itself, or nests too deep"
    return f"not YAML: {error}"


def _not_a_value(error: ValueError) -> str:
    """Of text that stands for none: in the file's bytes, in an escape, in a date or a number."""
    match error:
        case UnicodeDecodeError():
            return "not UTF-8 text"
        case UnicodeEncodeError():
            half = ascii(error.object[error.start])
            return f"has a text with {half}, half of a surrogate pair, which is no character"
    return f"has a value that is none: {str(error).partition(';')[0]}"


def _yaml_problem(place: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark
    at = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    return Problem(place + at, f"not YAML: {error.problem}")


def _convert(value: Any, into: type[Converted], place: str) -> Converted:
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        message, _, where = str(error).replace("`", "").partition(" - at ")
        raise TaskFileError([Problem(place + where.removeprefix("$"), message)]) from None


def _group_problems(group: str | None) -> Iterator[Problem]:
    if group is not None and not is_legal_name(group):
        yield Problem("group", f"{group!r} is not a name")


def _clashes(tasks: Sequence[TaskEntry], places: Sequence[str]) -> Iterator[Problem]:
    """Names that are there twice, after the expansion."""
    first: dict[str, str] = {}
    for entry, place in zip(tasks, places, strict=True):
        if entry.task in first:
            yield Problem(place, f"task {entry.task!r} is there already, from {first[entry.task]}")
        first.setdefault(entry.task, place)
