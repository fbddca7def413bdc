"""`sparkherd db`: the schema of a manager's database, for those who change it at a time of their own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.exit_codes import DONE, FAILED
from cli.options.common import json_option
from cli.options.settings import Sources, settings_options
from cli.views.output import tell
from manager.settings import DatabaseSettings, ManagerSettings
from protocol.errors import StartupError
from protocol.fencing import CLOCK_ENDS
from telemetry.logs import LogSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from manager.cluster.single_manager import ProcessLock
    from manager.storage.migrate import Schema

T = TypeVar("T")


@click.group("db")
def command() -> None:
    """Look at, and bring up to date, the schema of a manager's database.

    A manager that starts does the latter by itself, and refuses a database that a newer one has made.
    """


@command.command("status")
@json_option
@settings_options(DatabaseSettings)
def status(*, as_json: bool, **flags: Any) -> int:
    """Say which schema the database has; exit code 0 when it is this version's."""
    from manager.storage.migrate import schema_known, schema_of  # noqa: PLC0415 - `--help` needs no database

    schema = asyncio.run(_with_database(flags, schema_of, missing=schema_known(None)))
    return _tell(schema, as_json=as_json)


@command.command("upgrade")
@json_option
@settings_options(DatabaseSettings)
def upgrade(*, as_json: bool, **flags: Any) -> int:
    """Bring the schema up to date; a new database gets all its tables."""
    from manager.storage.migrate import schema_of, upgrade  # noqa: PLC0415 - the same

    def both(connection: Connection) -> Schema:
        upgrade(connection)
        return schema_of(connection)

    return _tell(asyncio.run(_with_database(flags, both)), as_json=as_json)


@command.command("restored")
@click.option(
    "--above",
    type=click.IntRange(0, CLOCK_ENDS),
    default=0,
    metavar="TOKEN",
    help="Raise tokens above this one, which a sink has seen: a clock was wrong, or goes slow.",
)
@json_option
@settings_options(DatabaseSettings)
def restored(*, above: int, as_json: bool, **flags: Any) -> int:
    """Make a database that was put back from a copy safe to go on with.

    Sinks and workers may have seen later tokens and generations than the copy knows. Tokens are raised to the
    present time in seconds, as if each were granted now, generations by a million. Stop every manager before.
    """
    from manager.storage.restored_backup import raise_numbers  # noqa: PLC0415 - `--help` needs no database

    raising = partial(raise_numbers, now_ms=time.time_ns() // 1_000_000, above=above)
    tasks = asyncio.run(_with_database(flags, raising, alone=True))
    tell({"tasks": tasks}, f"tokens of {tasks} tasks raised; start the managers", as_json=as_json)
    return DONE


async def _with_database(
    flags: dict[str, Any], work: Callable[[Connection], T], *, missing: T | None = None, alone: bool = False
) -> T:
    """What `work` finds; or `missing`, if that is something, where there is no file to work on.

    `alone` is for what no manager may be at work for.
    """
    from manager.storage.database import database_at  # noqa: PLC0415 - the same
    from manager.storage.migrate import with_schema  # noqa: PLC0415 - the same

    sources = Sources("manager", flags, (ManagerSettings, LogSettings))
    database = database_at(sources.resolve(DatabaseSettings).database)
    path = database.path
    if path is not None and not path.exists() and missing is not None:
        return missing
    with contextlib.ExitStack() as stack:
        if path is not None and alone:
            stack.callback(_lock(path).release)
        found = await with_schema(database, work)
    await database.close()
    return found


def _lock(path: Path) -> ProcessLock:
    from manager.cluster.single_manager import ProcessLock  # noqa: PLC0415 - the same

    if not path.exists():
        raise StartupError(f"--database: there is no {path}")
    return ProcessLock(path)


def _tell(schema: Schema, *, as_json: bool) -> int:
    result: dict[str, object] = {
        "present": schema.present,
        "newest": schema.newest,
        "is_current": schema.is_current,
    }
    tell(result, _sentence(schema), as_json=as_json)
    return DONE if schema.is_current else FAILED


def _sentence(schema: Schema) -> str:
    if schema.is_newer:
        return f"schema {schema.present}, newer than what this sparkherd knows, {schema.newest}"
    if schema.is_current:
        return f"schema {schema.present}, up to date"
    return f"schema {schema.present or 'none yet'}; `sparkherd db upgrade` makes it {schema.newest}"
