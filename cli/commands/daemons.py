"""`sparkherd manager` and `sparkherd worker`: settings in, exit code out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
import structlog

from cli.exit_codes import FAILED
from cli.options.settings import SettingSources, settings_options, warn_of_stray_variables
from manager.settings import ManagerSettings
from protocol.errors import StartupError
from telemetry.cause_ids import new_cause_id
from telemetry.logs import LogSettings, configure_logging
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound=msgspec.Struct)

log = structlog.get_logger(__name__)


@click.command("manager")
@settings_options(ManagerSettings, LogSettings)
def manager(**flags: Any) -> int:
    """Run a manager: it coordinates groups, keeps their tasks, and knows who runs what.

    Prints `listening on http://HOST:PORT` once it serves requests; SIGTERM stops it in order.
    Each setting can also be given as SPARKHERD_NAME, or as a key of [manager] in the --config file.
    """
    settings = _configured("manager", ManagerSettings, flags)
    import uvloop  # noqa: PLC0415 - `--help` needs no event loop

    from manager.daemon import run  # noqa: PLC0415 - nor a server

    return run_to_its_end(lambda: uvloop.run(run(settings, _announce)))


@click.command("worker")
@settings_options(WorkerSettings, LogSettings)
def worker(**flags: Any) -> int:
    """Run a worker: it joins a group, and runs the queries it is given in one Spark session.

    With --isolate each of them has a process and a JVM of its own.

    SIGTERM makes it stop its queries and leave the group in order.
    Each setting can also be given as SPARKHERD_NAME, or as a key of [worker] in the --config file.
    """
    settings = _configured("worker", WorkerSettings, flags)
    from worker.daemon import run  # noqa: PLC0415 - `--help` needs no membership
    from worker.malloc_arenas import use_one_arena  # noqa: PLC0415 - as above

    use_one_arena()
    return run_to_its_end(lambda: asyncio.run(run(settings)))


def _configured(role: str, struct: type[S], flags: dict[str, Any]) -> S:
    """The settings of a daemon, whose log is written as they say from now on."""
    sources = SettingSources(role, flags, (struct, LogSettings))
    settings = sources.resolve(struct)
    configure_logging(sources.resolve(LogSettings))
    warn_of_stray_variables()
    return settings


def _announce(url: str) -> None:
    click.echo(f"listening on {url}")


def run_to_its_end(daemon: Callable[[], int]) -> int:
    """The exit code of `daemon`; a bug that ends it is a line of the log as all others are.

    Raises:
        StartupError: it could not start.
    """
    try:
        return daemon()
    except StartupError:
        raise
    except Exception:
        log.exception("a bug ends the process", cause_id=new_cause_id())
        return FAILED
