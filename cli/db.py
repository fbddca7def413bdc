"""`sparkherd db`: the schema of a manager's database, for those who change it at a time of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from cli.admin import json_option
from cli.exits import DONE, FAILED
from cli.options import Sources, settings_options
from cli.output import tell
from manager.settings import DatabaseSettings, ManagerSettings
from telemetry.logs import LogSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from manager.storage.migrate import Schema


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
    from manager.storage.migrate import schema_of  # noqa: PLC0415 - `--help` needs no database

    return _tell(asyncio.run(_with_database(flags, schema_of, makes_it=False)), as_json=as_json)


@command.command("upgrade")
@json_option
@settings_options(DatabaseSettings)
def upgrade(*, as_json: bool, **flags: Any) -> int:
    """Bring the schema up to date; a new database gets all its tables."""
    from manager.storage.migrate import schema_of, upgrade  # noqa: PLC0415 - the same

    def both(connection: Connection) -> Schema:
        upgrade(connection)
        return schema_of(connection)

    return _tell(asyncio.run(_with_database(flags, both, makes_it=True)), as_json=as_json)


async def _with_database(
    flags: dict[str, Any], work: Callable[[Connection], Schema], *, makes_it: bool
) -> Schema:
    """What `work` finds; a file that is not there is made only by who means to."""
    from manager.storage.engine import make_engine  # noqa: PLC0415 - the same
    from manager.storage.file import path_of  # noqa: PLC0415 - the same
    from manager.storage.migrate import schema_known, with_schema  # noqa: PLC0415 - the same

    sources = Sources("manager", flags, (ManagerSettings, LogSettings))
    engine = make_engine(sources.resolve(DatabaseSettings).database)
    path = path_of(engine)
    if path is not None and not path.exists() and not makes_it:
        return schema_known(None)
    schema = await with_schema(engine, work)
    await engine.dispose()
    return schema


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
