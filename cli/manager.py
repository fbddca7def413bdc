"""`sparkherd manager`: settings in, exit code out; `manager.daemon` does the work."""

from __future__ import annotations

from typing import Any

import click

from cli.daemons import run_to_its_end
from cli.options import Sources, settings_options, warn_of_stray_variables
from manager.settings import ManagerSettings
from telemetry.logs import LogSettings, configure_logging


@click.command("manager")
@settings_options(ManagerSettings, LogSettings)
def command(**flags: Any) -> int:
    """Run a manager: it coordinates groups, keeps their tasks, and knows who runs what.

    Prints `listening on http://HOST:PORT` once it serves requests; SIGTERM stops it in order.
    Each setting can also be given as SPARKHERD_NAME, or as a key of [manager] in the --config file.
    """
    sources = Sources("manager", flags, (ManagerSettings, LogSettings))
    settings = sources.resolve(ManagerSettings)
    configure_logging(sources.resolve(LogSettings))
    warn_of_stray_variables()
    return _serve(settings)


def _serve(settings: ManagerSettings) -> int:
    import uvloop  # noqa: PLC0415 - `--help` needs no event loop

    from manager.daemon import run  # noqa: PLC0415 - nor a server

    return run_to_its_end(lambda: uvloop.run(run(settings, _announce)))


def _announce(url: str) -> None:
    click.echo(f"listening on {url}")
