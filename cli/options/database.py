"""`--database`, for commands that work on the managers' database and not through a manager."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from cli.options.settings import SettingSources, settings_options
from manager.settings import DatabaseSettings, ManagerSettings
from protocol.errors import StartupError
from telemetry.logs import LogSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from manager.cluster.single_manager import ProcessLock

T = TypeVar("T")

database_options = settings_options(DatabaseSettings)


def in_database(
    flags: dict[str, Any], work: Callable[[Connection], T], *, missing: T | None = None, alone: bool = False
) -> T:
    """Do `work` in one transaction of the database that the settings name.

    Args:
        flags: of the command line; they go before the environment and the file of `--config`.
        work: is given the connection.
        missing: what is found where there is no file to work on; None has it made.
        alone: the file must be there, and a lock beside it shows that no manager is at work meanwhile.

    Returns:
        What `work` finds.

    Raises:
        StartupError: the database cannot be used, or a manager has the lock.
    """
    return asyncio.run(_in_database(flags, work, missing=missing, alone=alone))


async def _in_database(
    flags: dict[str, Any], work: Callable[[Connection], T], *, missing: T | None, alone: bool
) -> T:
    from manager.storage.database import database_at  # noqa: PLC0415 - `--help` needs no database
    from manager.storage.migrate import with_schema  # noqa: PLC0415 - the same

    sources = SettingSources("manager", flags, (ManagerSettings, LogSettings))
    database = database_at(sources.resolve(DatabaseSettings).database)
    path = database.path
    if path is not None and not path.exists() and missing is not None:
        return missing
    with ExitStack() as stack:
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
