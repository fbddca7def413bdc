"""One schema a role: its settings as flags, environment variables and keys of a TOML table (protocol §1).

A role's settings are a frozen `msgspec.Struct` whose fields carry their bounds and a description.
What wins is flag over environment over file over default; lists and mappings replace, they do not add up.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PREFIX: Final = "SPARKHERD_"

Shape = Literal["value", "switch", "list", "mapping"]
S = TypeVar("S", bound=msgspec.Struct)


class SettingsError(StartupError):
    """A setting is missing or wrong; the text is one line that names it as the user wrote it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a settings Struct, and what it is called in each place it can be given."""

    name: str
    spelling: str
    type: Any
    shape: Shape
    description: str
    default: Any

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is msgspec.NODEFAULT

    @property
    def flag(self) -> str:
        """As `--min-session-timeout-ms`."""
        return "--" + self.spelling.replace("_", "-")

    @property
    def variable(self) -> str:
        """As `SPARKHERD_MIN_SESSION_TIMEOUT_MS`."""
        return PREFIX + self.spelling.upper()

    @property
    def unit(self) -> str:
        """`ms`, `bytes` or nothing, read off the end of the name."""
        last = self.spelling.rpartition("_")[2]
        return last if last in {"ms", "bytes"} else ""


def settings_of(struct: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """The settings of a role, in the order of its fields; `field(name=...)` gives one another spelling."""
    return tuple(
        Setting(
            name=field.name,
            spelling=field.encode_name,
            type=field.type,
            shape=_shape(field.type),
            description=next(_descriptions(field.type), ""),
            default=_default(field),
        )
        for field in msgspec.structs.fields(struct)
    )


def resolve(
    struct: type[S],
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    table: Mapping[str, Any],
    origin: str,
) -> S:
    """The settings of a role, from all the places they may be given.

    Args:
        struct: the role's schema.
        flags: by field name, text as typed (a sequence of texts for lists and mappings); None is not given.
        environ: the process's environment.
        table: the role's table of the TOML file, empty without one; see `refuse_unknown_keys`.
        origin: what the table is called in errors, as `herd.toml [manager]`.

    Raises:
        SettingsError: a value is missing, malformed or out of bounds.
    """
    values = {
        setting.name: value
        for setting in settings_of(struct)
        for value in _given(setting, flags=flags, environ=environ, table=table, origin=origin)
    }
    try:
        return struct(**values)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def refuse_unknown_keys(
    structs: Iterable[type[msgspec.Struct]], table: Mapping[str, Any], origin: str
) -> None:
    """Raise `SettingsError` for a key that sets nothing in any of the `structs` the table is read for."""
    known = {setting.spelling for struct in structs for setting in settings_of(struct)}
    if unknown := sorted(table.keys() - known):
        raise SettingsError(f"{origin}: unknown key {unknown[0]!r}")


def stray_variables(environ: Mapping[str, str], known: Iterable[str]) -> tuple[str, ...]:
    """The `SPARKHERD_` variables that set nothing, in order; `known` are the names that do."""
    return tuple(sorted({name for name in environ if name.startswith(PREFIX)} - set(known)))


def variables_of(struct: type[msgspec.Struct]) -> frozenset[str]:
    """The environment variables that a role reads."""
    return frozenset(setting.variable for setting in settings_of(struct))


def _given(
    setting: Setting,
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    table: Mapping[str, Any],
    origin: str,
) -> Iterator[Any]:
    """The value that wins, if any place gives one."""
    if (flag := flags.get(setting.name)) not in (None, ()):
        yield _from_text(setting, _items(setting, flag), setting.flag)
    elif (text := environ.get(setting.variable)) is not None:
        yield _from_text(setting, _split(setting, text), setting.variable)
    elif setting.spelling in table:
        yield _convert(setting, table[setting.spelling], f"{origin} {setting.spelling}", strict=True)
    elif setting.required:
        raise SettingsError(f"{setting.flag} is missing; give it, or {setting.variable} in the environment")


def _split(setting: Setting, text: str) -> str | list[str]:
    """The items of a variable's text: separated by commas, or by line breaks where values have commas."""
    if setting.shape not in ("list", "mapping"):
        return text
    separator = "\n" if "\n" in text else ","
    return [item.strip() for item in text.split(separator) if item.strip()]


def _items(setting: Setting, flag: Any) -> Any:
    """A flag that may be repeated may also list its values with commas; those of mappings may have commas."""
    return [item for text in flag for item in _split(setting, text)] if setting.shape == "list" else flag


def _from_text(setting: Setting, given: Any, place: str) -> Any:
    value = _pairs(given, place) if setting.shape == "mapping" else given
    return _convert(setting, value, place, strict=False)


def _pairs(items: Sequence[str], place: str) -> dict[str, str]:
    """`KEY=VALUE` items as a mapping; only the first `=` counts."""
    pairs = [item.partition("=") for item in items]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise SettingsError(f"{place}: expected KEY=VALUE, got {key!r}")
    return {key: value for key, _, value in pairs}


def _convert(setting: Setting, value: Any, place: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, setting.type, strict=strict)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{place}: {_sentence(error)}{_hint(setting, value)}") from None


def _sentence(error: msgspec.ValidationError) -> str:
    """Msgspec's message as it reads best behind a colon; what was given follows from elsewhere."""
    text = str(error).replace("`", "").split(", got ")[0]
    return "malformed" if "matching regex" in text else text[:1].lower() + text[1:]


def _hint(setting: Setting, value: Any) -> str:
    """The refused value; of a text, which may carry a password, what it is for instead."""
    is_text = str in _members(setting.type) or setting.shape in ("list", "mapping")
    return f" ({setting.description.rstrip('.')})" if is_text else f", got {value!r}"


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _members(annotation: Any) -> tuple[Any, ...]:
    """The types a value may have, without `Annotated` and without None."""
    if hasattr(annotation, "__metadata__"):
        return _members(annotation.__origin__)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(found for member in typing.get_args(annotation) for found in _members(member))
    return () if annotation is types.NoneType else (annotation,)


def _shape(annotation: Any) -> Shape:
    kinds = {typing.get_origin(member) or member for member in _members(annotation)}
    if kinds & {tuple, list, frozenset, set}:
        return "list"
    if dict in kinds:
        return "mapping"
    return "switch" if kinds == {bool} else "value"


def _descriptions(annotation: Any) -> Iterator[str]:
    """The descriptions that an annotation carries, outermost first."""
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.description:
            yield meta.description
    for member in typing.get_args(annotation):
        yield from _descriptions(member)
