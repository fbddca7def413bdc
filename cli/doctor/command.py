"""`sparkherd doctor`: one table of what is there, what is wrong, and what to do."""

from __future__ import annotations

from typing import Any, Final

import click

from cli.doctor import machine, managers, spark, storage
from cli.doctor.finding import Check, Findings, Settings, Status, examine
from cli.exit_codes import DONE, FAILED
from cli.options.common import example, json_option
from cli.options.settings import SettingSources, settings_options, warn_of_stray_variables
from cli.views.output import print_json, print_table
from manager.settings import DatabaseSettings, ManagerSettings
from telemetry.logs import LogSettings
from telemetry.secrets import scrub
from worker.settings import WorkerSettings

CHECKS: Final = (
    Check("python", machine.python, 5.0),
    Check("java", machine.java, 25.0),
    Check("spark", spark.spark, 10.0),
    Check("connectors", spark.connectors, 5.0),
    Check("memory", machine.memory, 5.0),
    Check("checkpoints", storage.checkpoints, 15.0),
    Check("manager", managers.manager, 30.0),
    Check("database", storage.database, 15.0),
    Check("clock", managers.clock, 30.0),
    Check("token", managers.token, 30.0),
)
NOT_LOOKED_AT: Final = (
    "client_id",
    "instance_id",
    "assignor",
    "move_at_once",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "heartbeat_wait_ms",
    "lag_interval_ms",
    "stop_timeout_ms",
    "start_timeout_ms",
    "warm_up_timeout_ms",
    "jvm_timeout_ms",
    "allow_entrypoint",
    "allow_secret_env",
    "secrets_dir",
    "allow_jdbc",
    "capacity",
    "max_tasks",
    "status_listen",
    "label",
)
"""Settings of a worker that no check is about."""


@click.command(
    "doctor",
    epilog=example("sparkherd doctor", "sparkherd doctor java spark checkpoints --config herd.toml --json"),
)
@click.argument("names", metavar="[CHECK]...", nargs=-1, type=click.Choice([each.name for each in CHECKS]))
@settings_options(Settings, leave_out=NOT_LOOKED_AT)
@json_option
def command(names: tuple[str, ...], *, as_json: bool, **flags: Any) -> int:
    """Look at what a manager or a worker would need on this machine, and say what to do about it.

    Settings are theirs: the same flags, variables and tables of the --config file. Nothing is started and
    nothing left behind. All checks are made, or those named: python, java, spark, connectors, memory,
    checkpoints, manager, database, clock, token. Exit code 1 if one found a problem; a warning is none.
    """
    settings = _settings(flags)
    warn_of_stray_variables()
    findings = examine([each for each in CHECKS if not names or each.name in names], settings)
    _print(findings, as_json=as_json)
    return FAILED if any(each.status is Status.PROBLEM for each in findings.values()) else DONE


def _settings(flags: dict[str, Any]) -> Settings:
    """A worker's from [worker], the database from [manager]."""
    kept = {name: flags[name] for name in ("config", "database")}
    of_manager = SettingSources("manager", kept, (ManagerSettings, LogSettings)).resolve(DatabaseSettings)
    of_worker = SettingSources(
        "worker", {**flags, "database": of_manager.database}, (WorkerSettings, LogSettings)
    )
    return of_worker.resolve(Settings)


def _print(findings: Findings, *, as_json: bool) -> None:
    rows = [(name, each.status, scrub(each.found), scrub(each.to_do)) for name, each in findings.items()]
    if as_json:
        keys = ("check", "status", "found", "to_do")
        print_json({"checks": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_table(("CHECK", "STATUS", "FOUND", "WHAT TO DO"), rows)
