"""From a settings Struct to click options and back (protocol §1)."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from configuration.settings import (
    Setting,
    SettingsError,
    refuse_unknown_keys,
    resolve,
    settings_of,
    stray_variables,
    variables_of,
)
from telemetry.logs import LogSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

S = TypeVar("S", bound=msgspec.Struct)

TABLES: Final = ("manager", "worker")
CONFIG_VARIABLE: Final = "SPARKHERD_CONFIG"


def settings_options(
    *structs: type[msgspec.Struct], leave_out: Container[str] = ()
) -> Callable[[Decorated], Decorated]:
    """Give a command one flag a setting of `structs`, but for those to `leave_out`, and `--config FILE`."""

    def decorate(command: Decorated) -> Decorated:
        settings = [setting for struct in structs for setting in settings_of(struct)]
        for setting in reversed([each for each in settings if each.name not in leave_out]):
            command = _option(setting)(command)
        return click.option(
            "--config",
            metavar="FILE",
            envvar=CONFIG_VARIABLE,
            help="A TOML file with more settings.",
        )(command)

    return decorate


class SettingSources:
    """Where one run of a role takes its settings from; reads the file once."""

    def __init__(self, role: str, flags: Mapping[str, Any], structs: Iterable[type[msgspec.Struct]]) -> None:
        config = flags.get("config")
        self._flags = flags
        self._table = _table(Path(config), role) if config else {}
        self._origin = f"{config} [{role}]"
        refuse_unknown_keys(structs, self._table, self._origin)

    def resolve(self, struct: type[S]) -> S:
        """The settings of `struct`; raises `SettingsError`."""
        return resolve(struct, flags=self._flags, environ=os.environ, table=self._table, origin=self._origin)


def warn_of_stray_variables() -> None:
    """Say which `SPARKHERD_` variables set nothing in any role; a misspelt one is else found late."""
    from manager.settings import ManagerSettings  # noqa: PLC0415 - a worker has no other use for it
    from worker.client.bearer import VARIABLE  # noqa: PLC0415 - nor a manager for this
    from worker.settings import WorkerSettings  # noqa: PLC0415 - the same

    roles: tuple[type[msgspec.Struct], ...] = (ManagerSettings, WorkerSettings, LogSettings)
    known = {CONFIG_VARIABLE, VARIABLE}.union(*(variables_of(role) for role in roles))
    for name in stray_variables(os.environ, known):
        click.echo(f"sparkherd: warning: {name} is not a setting and has no effect", err=True)


def _table(path: Path, role: str) -> dict[str, Any]:
    document = _document(path)
    if unknown := sorted(document.keys() - set(TABLES)):
        raise SettingsError(f"{path}: unknown table or key {unknown[0]!r}; known are [manager] and [worker]")
    table = document.get(role, {})
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: {role} must be a table")
    return table


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"--config {path}: {error.strerror}") from None
    except ValueError as error:  # also what is not UTF-8
        raise SettingsError(f"--config {path}: not TOML: {error}") from None


def _option(setting: Setting) -> Callable[[Decorated], Decorated]:
    if setting.shape == "switch":
        return click.option(
            f"{setting.flag}/--no-{setting.flag[2:]}", setting.name, default=None, help=_help(setting)
        )
    return click.option(
        setting.flag,
        setting.name,
        multiple=setting.shape in ("list", "mapping"),
        metavar=_metavar(setting),
        help=_help(setting),
    )


def _metavar(setting: Setting) -> str:
    if setting.shape == "mapping":
        return "KEY=VALUE"
    return setting.unit.upper() or "VALUE"


def _help(setting: Setting) -> str:
    repeatable = " May be repeated." if setting.shape in ("list", "mapping") else ""
    return f"{setting.description.rstrip('.')}.{repeatable}{_default_text(setting)}"


def _default_text(setting: Setting) -> str:
    if setting.required:
        return "  [required]"
    if setting.default in (None, (), [], {}, ""):
        return ""
    shown = setting.default
    if setting.shape == "list":
        shown = ", ".join(map(str, setting.default))
    if setting.shape == "switch":
        shown = "on" if setting.default else "off"
    return f"  [default: {shown}]"
