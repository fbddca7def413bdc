"""`sparkherd db`: the schema of a manager's database, for those who change it at a time of their own."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cli.exit_codes import DONE, FAILED
from cli.options.common import json_option
from cli.options.database import database_options, in_database
from cli.views.output import tell
from protocol.fencing import CLOCK_ENDS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from manager.storage.migrate import Schema


@click.group("db")
def command() -> None:
    """Look at, and bring up to date, the schema of a manager's database.

    A manager that starts does the latter by itself, and refuses a database that a newer one has made.
    """


@command.command("status")
@json_option
@database_options
def status(*, as_json: bool, **flags: Any) -> int:
    """Say which schema the database has; exit code 0 when it is this version's."""
    from manager.storage.migrate import schema_known, schema_of  # noqa: PLC0415 - `--help` needs no database

    schema = in_database(flags, schema_of, missing=schema_known(None))
    return _tell(schema, as_json=as_json)


@command.command("upgrade")
@json_option
@database_options
def upgrade(*, as_json: bool, **flags: Any) -> int:
    """Bring the schema up to date; a new database gets all its tables."""
    from manager.storage.migrate import schema_of, upgrade  # noqa: PLC0415 - the same

    def both(connection: Connection) -> Schema:
        upgrade(connection)
        return schema_of(connection)

    return _tell(in_database(flags, both), as_json=as_json)


@command.command("restored")
@click.option(
    "--above",
    type=click.IntRange(0, CLOCK_ENDS),
    default=0,
    metavar="TOKEN",
    help="Raise tokens above this one, which a sink has seen: a clock was wrong, or goes slow.",
)
@json_option
@database_options
def restored(*, above: int, as_json: bool, **flags: Any) -> int:
    """Make a database that was put back from a copy safe to go on with.

    Sinks and workers may have seen later tokens and generations than the copy knows. Tokens are raised to the
    present time in seconds, as if each were granted now, generations by a million. Stop every manager before.
    """
    from manager.storage.restored_backup import raise_numbers  # noqa: PLC0415 - `--help` needs no database

    raising = partial(raise_numbers, now_ms=time.time_ns() // 1_000_000, above=above)
    tasks = in_database(flags, raising, alone=True)
    tell({"tasks": tasks}, f"tokens of {tasks} tasks raised; start the managers", as_json=as_json)
    return DONE


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
