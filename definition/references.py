"""Secrets by reference: `${env:NAME}` and `${file:PATH}` in the values of a definition (protocol §6).

The manager sees that they are well-formed, and never what they stand for. The worker that runs the task looks
that up just before it starts the query. `$${` is the text `${` itself, where neither Spark nor what it calls
sees it: those fill `${...}` from their own process's variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from definition.reading import path_to
from definition.values import reference_fault
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_START = re.compile(r"\$?\$\{")
_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPED = re.compile(r"\$\$\{")
_PROVIDERS = "kafka.config.providers"
_FORM = "write ${env:NAME} or ${file:PATH}"
_OR_ESCAPED = f"{_FORM}, or $${{ for the text ${{ itself"


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands in a value in place of a secret: the name of a variable, or the path of a file."""

    kind: Literal["env", "file"]
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"


def find_problems(value: object, path: str, *, for_spark: bool = True) -> Iterator[Problem]:
    """What is wrong with the references in `value`, however deep they are in it; in names there are none.

    Args:
        value: decoded JSON at `path`.
        path: its place in the definition.
        for_spark: Spark will see it, and Hadoop, and Kafka's client; each puts in its process's variables
            where a value asks for them, and Hadoop looks at what it has put in once more.
    """
    for place, text, is_name in _texts(value, path):
        if fault := reference_fault(text) if is_name else _fault(text, for_spark=for_spark):
            yield Problem(place, fault)


def option_problems(options: object, path: str, *, for_spark: bool = True) -> Iterator[Problem]:
    """What is wrong with the references in `options`, of a source or sink, as `find_problems` has it.

    Nor may they name providers of Kafka's client, which fill in values from wherever it can read.
    """
    yield from find_problems(options, path, for_spark=for_spark)
    for name in options if isinstance(options, dict) else ():
        if name.lower().startswith(_PROVIDERS):
            yield Problem(path_to(path, name), f"reads variables or files of the worker; {_FORM}")


def resolve(value: Any, path: str, lookup: Callable[[Reference, str], str]) -> Any:
    """`value` with what its references stand for; those must be well-formed.

    Args:
        value: decoded JSON at `path`.
        path: its place in the definition.
        lookup: what a reference stands for; its second argument is the place of the text it stands in.
    """
    match value:
        case str():
            return _filled(value, lambda reference: lookup(reference, path))
        case dict():
            return {key: resolve(each, path_to(path, key), lookup) for key, each in value.items()}
        case list() | tuple():
            return [resolve(each, f"{path}[{at}]", lookup) for at, each in enumerate(value)]
        case _:
            return value


def specimen(text: str) -> str | None:
    """`text` with a digit for each reference, to be checked for all else; None if it begins with one."""
    if _REFERENCE.match(text):
        return None
    return _filled(text, lambda _: "0") if _fault(text, for_spark=False) is None else text


def _texts(value: object, path: str) -> Iterable[tuple[str, str, bool]]:
    """Each text with its place, and whether it is the name of what stands there."""
    match value:
        case str():
            yield path, value, False
        case dict():
            for key, each in value.items():
                yield path_to(path, key), key, True
                yield from _texts(each, path_to(path, key))
        case list() | tuple():
            for at, each in enumerate(value):
                yield from _texts(each, f"{path}[{at}]")


def _fault(text: str, *, for_spark: bool) -> str | None:
    """What is wrong with a text. Never quotes it: who forgets a brace may have written the secret itself."""
    if for_spark and _ESCAPED.search(text):
        return f"has a $${{, by which Spark and Hadoop would read the worker's own environment; {_FORM}"
    for start in _START.finditer(text):
        if start[0].startswith("$$"):
            continue
        reference = _REFERENCE.match(text, start.start())
        if reference is None:
            return f"has a ${{ that begins no reference; {_FORM if for_spark else _OR_ESCAPED}"
        if fault := _name_fault(reference["kind"], reference["name"]):
            return fault
    return None


def _name_fault(kind: str, name: str) -> str | None:
    if kind == "env":
        is_legal = _VARIABLE.match(name)
        return None if is_legal else "names no variable: ${env:NAME} takes letters, digits and _"
    if not name.strip() or "\0" in name:
        return "names no file: write ${file:PATH}"
    return "must not lead out of the folder of secrets by .." if ".." in name.split("/") else None


def _filled(text: str, value_of: Callable[[Reference], str]) -> str:
    """`text`, left to right: what is put in is not looked at again."""
    parts, done = [], 0
    for start in _START.finditer(text):
        parts.append(text[done : start.start()])
        reference = _REFERENCE.match(text, start.start())
        if reference is None:
            parts.append("${")
            done = start.end()
        else:
            parts.append(value_of(msgspec.convert(reference.groupdict(), Reference)))
            done = reference.end()
    return "".join((*parts, text[done:]))
