"""`sparkherd worker`: settings in, exit code out; `worker.daemon` does the work."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cli.daemons import run_to_its_end
from cli.options import Sources, settings_options, warn_of_stray_variables
from telemetry.logs import LogSettings, configure_logging
from worker.settings import WorkerSettings


@click.command("worker")
@settings_options(WorkerSettings, LogSettings)
def command(**flags: Any) -> int:
    """Run a worker: it joins a group, holds one Spark session and runs the queries it is given.

    SIGTERM makes it stop its queries and leave the group in order.
    Each setting can also be given as SPARKHERD_NAME, or as a key of [worker] in the --config file.
    """
    sources = Sources("worker", flags, (WorkerSettings, LogSettings))
    settings = sources.resolve(WorkerSettings)
    configure_logging(sources.resolve(LogSettings))
    warn_of_stray_variables()
    return _serve(settings)


def _serve(settings: WorkerSettings) -> int:
    from worker.daemon import run  # noqa: PLC0415 - `--help` needs no membership

    return run_to_its_end(lambda: asyncio.run(run(settings)))
