"""`tasks.yaml`: the tasks of a group in one file.

A mapping with `group` (which `--group` overrides) and `tasks`, a list of entries with `task` (the name),
`definition` (PROTOCOL.md §6) and, if it is not to run at once, `target`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml

from protocol.errors import StartupError
from protocol.messages.tasks import Problem
from protocol.names import Name, is_legal_name
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Converted = TypeVar("Converted")


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
        super().__init__("; ".join(map(describe, problems)))
        self.problems = tuple(problems)


def describe(problem: Problem) -> str:
    """`PLACE: what is wrong`."""
    return f"{problem.path}: {problem.message}"


def read_task_file(path: Path) -> TaskFile:
    """The file's tasks; raises `TaskFileError` with all that is wrong with its shape."""
    place = str(path)
    document = _convert(_parse(path), _Document, place)
    problems: list[Problem] = []
    tasks: list[TaskEntry] = []
    for index, entry in enumerate(document.tasks):
        try:
            tasks.append(_convert(entry, TaskEntry, f"{place}: tasks[{index}]"))
        except TaskFileError as error:
            problems.extend(error.problems)
    problems.extend(_clashes(tasks, document.group, place))
    if problems:
        raise TaskFileError(problems)
    return TaskFile(document.group, tuple(tasks))


def _parse(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise TaskFileError([Problem(str(path), error.strerror or str(error))]) from None
    except UnicodeDecodeError:
        raise TaskFileError([Problem(str(path), "not UTF-8 text")]) from None
    except yaml.MarkedYAMLError as error:
        raise TaskFileError([_yaml_problem(path, error)]) from None
    except yaml.YAMLError as error:
        raise TaskFileError([Problem(str(path), f"not YAML: {error}")]) from None


def _yaml_problem(path: Path, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark
    place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
    return Problem(place, f"not YAML: {error.problem}")


def _convert(value: Any, into: type[Converted], place: str) -> Converted:
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        message, _, where = str(error).replace("`", "").partition(" - at ")
        raise TaskFileError([Problem(place + where.removeprefix("$"), message)]) from None


def _clashes(tasks: Sequence[TaskEntry], group: str | None, place: str) -> Iterator[Problem]:
    """What only shows across the whole file."""
    if group is not None and not is_legal_name(group):
        yield Problem(f"{place}: group", f"{group!r} is not a name")
    names = [entry.task for entry in tasks]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(f"{place}: tasks", f"{name!r} is there {names.count(name)} times")


class _UniqueKeys(yaml.SafeLoader):
    """YAML's safe subset; a key that is there twice is refused instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """The mapping of `node`."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} twice", problem_mark=key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)
