"""Reads a JSON document into Structs and lists everything that is wrong with it.

Most documents are sound, which a glance with msgspec and the checks finds out. But msgspec stops at the first
fault, and a person who writes a definition wants them all at once: where the glance finds one, the document
is walked along the Structs, and only the leaves are left to msgspec.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    Sound = Callable[[Any], bool]

T = TypeVar("T")

MOST_PROBLEMS = 1000
"""Of a document; nobody reads more, and a large one may have a hundred thousand."""

_UNIONS = (Union, UnionType)
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule on one value, put into its annotation: `Annotated[str, Constraint(fault)]`.

    `fault` gets the value, of the right type already, and returns what is wrong with it, or None.
    """

    fault: Callable[[Any], str | None]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON object of a document."""

    def faults(self) -> Iterable[Problem]:
        """What is wrong between the fields; paths start at this section.

        Called even if single fields are wrong: what could not be read is UNSET, neither None nor true.
        """
        return ()


def read(value: object, kind: type[T], path: str = "") -> tuple[T, tuple[Problem, ...]]:
    """`value`, decoded JSON at `path`, as a `kind`; of use only if there is no problem.

    Where there are more than `MOST_PROBLEMS`, the last one says so.
    """
    result = _glance(value, kind)
    if result is not UNSET:
        return result, ()
    reader = _Reader()
    try:
        result = reader.read(value, kind, path)
    except _TooManyError:
        reader.problems.append(Problem(path, f"has more problems than these {MOST_PROBLEMS}"))
    return result, tuple(reader.problems)


def readable(*values: object) -> bool:
    """Whether all `values` of a section could be read."""
    return all(value is not UNSET for value in values)


def path_to(parent: str, key: str) -> str:
    """The place of `key` in `parent`; a key that is no plain word is quoted, as in `labels["a b"]`."""
    if not _PLAIN_KEY.match(key):
        return f"{parent}[{json.dumps(key)}]"
    return f"{parent}.{key}" if parent else key


class _TooManyError(Exception):
    """There is no use in reading on."""


@dataclass(slots=True)
class _Reader:
    """One walk through one document."""

    problems: list[Problem] = field(default_factory=list)

    def read(self, value: object, kind: Any, path: str) -> Any:
        """`value` as `kind`, or UNSET and a problem."""
        for option in _options(kind):
            if isinstance(value, dict) and isinstance(option, type) and issubclass(option, Section):
                return self._section(value, option, path)
            if isinstance(value, dict) and get_origin(option) is dict:
                return self._map(value, get_args(option)[1], path)
            if isinstance(value, list) and get_origin(option) is tuple:
                return self._row(value, get_args(option)[0], path)
        return self._leaf(value, kind, path)

    def _map(self, value: dict[str, object], of: Any, path: str) -> object:
        items = {key: self.read(item, of, path_to(path, key)) for key, item in value.items()}
        return items if readable(*items.values()) else UNSET

    def _row(self, value: list[object], of: Any, path: str) -> object:
        items = tuple(self.read(item, of, f"{path}[{at}]") for at, item in enumerate(value))
        return items if readable(*items) else UNSET

    def _section(self, value: dict[str, object], kind: type[Section], path: str) -> Section:
        fields = _fields(kind)
        self._refuse_unknown(value.keys(), [each.encode_name for each in fields], path)
        content: dict[str, Any] = {}
        for each in fields:
            place = path_to(path, each.encode_name)
            if each.encode_name in value:
                content[each.name] = self.read(value[each.encode_name], each.type, place)
            elif each.required:
                content[each.name] = UNSET
                self._problem(place, "is required")
        section = kind(**content)
        for fault in section.faults():
            self._problem(".".join(filter(None, (path, fault.path))), fault.message)
        return section

    def _refuse_unknown(self, names: Iterable[str], known: list[str], path: str) -> None:
        for name in names:
            if name not in known:
                alike = get_close_matches(name, known, n=1)
                hint = f"did you mean {alike[0]}?" if alike else f"known are {', '.join(known)}"
                self._problem(path_to(path, name), f"unknown key; {hint}")

    def _leaf(self, value: object, kind: Any, path: str) -> Any:
        for option in _options(kind):
            if get_origin(option) is Literal and value not in get_args(option):
                self._problem(path, f"expected one of {', '.join(map(str, get_args(option)))}")
                return UNSET
        try:
            leaf = msgspec.convert(value, kind)
        except msgspec.ValidationError as fault:
            message = str(fault).replace("`", "")
            self._problem(path, message[:1].lower() + message[1:])
            return UNSET
        return leaf if leaf is None else self._checked(leaf, kind, path)

    def _checked(self, leaf: object, kind: Any, path: str) -> object:
        for check in _checks(kind):
            if fault := check.fault(leaf):
                self._problem(path, fault)
                return UNSET
        return leaf

    def _problem(self, path: str, message: str) -> None:
        if len(self.problems) == MOST_PROBLEMS:
            raise _TooManyError
        self.problems.append(Problem(path, message))


def _glance(value: object, kind: Any) -> Any:
    """`value` as `kind`, or UNSET if there is a fault anywhere in it."""
    try:
        result = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return UNSET
    return result if all(sound(result) for sound in _soundness(kind)) else UNSET


def _is_sound(leaf: object, checks: Sequence[Constraint]) -> bool:
    return leaf is None or not any(check.fault(leaf) for check in checks)


def _are_sound(items: Collection[object] | None, soundness: Sequence[Sound]) -> bool:
    values = items.values() if isinstance(items, dict) else items or ()
    return all(sound(value) for value in values for sound in soundness)


def _is_sound_section(section: Section | None, fields: Sequence[tuple[str, Sound]]) -> bool:
    if section is None:
        return True
    for name, sound in fields:
        value = getattr(section, name)
        if value is not None and not sound(value):
            return False
    return not tuple(section.faults())


# Looking a type up costs ten times what reading a value by it does, and the types are few.


@cache
def _fields(kind: type[Section]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a section."""
    return msgspec.structs.fields(kind)


@cache
def _options(kind: Any) -> tuple[Any, ...]:
    """What `kind` may be: the parts of a union without their annotations, or `kind` itself."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in _UNIONS:
        return tuple(option for part in get_args(kind) for option in _options(part))
    return (kind,)


@cache
def _checks(kind: Any) -> list[Constraint]:
    """The checks in `kind`, those of a union's parts included."""
    if get_origin(kind) is Annotated:
        outer = [note for note in kind.__metadata__ if isinstance(note, Constraint)]
        return outer + _checks(get_args(kind)[0])
    if get_origin(kind) in _UNIONS:
        return [check for part in get_args(kind) for check in _checks(part)]
    return []


@cache
def _soundness(kind: Any) -> tuple[Sound, ...]:
    """What says whether a value is without fault, which msgspec has let through as a `kind`.

    Of a type that may be more than one thing, and one of those an object or list, it never does.
    """
    options = [option for option in _options(kind) if option is not NoneType]
    origins = {get_origin(option) for option in options}
    sections = [option for option in options if isinstance(option, type) and issubclass(option, Section)]
    if len(options) > 1 and (sections or origins & {dict, tuple}):
        return (lambda value: value is None,)
    if sections:
        fields = [(each.name, sound) for each in _fields(sections[0]) for sound in _soundness(each.type)]
        return (partial(_is_sound_section, fields=fields),)
    if origins & {dict, tuple}:
        items = _soundness(get_args(options[0])[1 if origins == {dict} else 0])
        return (partial(_are_sound, soundness=items),) if items else ()
    checks = _checks(kind)
    return (partial(_is_sound, checks=checks),) if checks else ()
