"""`sparkherd demo`: sets the scene, has the story played, and compares the sink with the truth."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cli.client.admin_client import AdminClient
from cli.demo.check import Comparison, compare, last_batches
from cli.demo.data import ALL_FLIGHTS, package_file, write_parts
from cli.demo.demo_tasks import demo_tasks
from cli.demo.herd import Herd, HerdError
from cli.demo.story import FIRST_WORKERS, Failover, Scaling, Story
from cli.demo.truth import truth
from cli.demo.view import View, view
from cli.exit_codes import DONE, FAILED
from cli.views.output import print_json
from protocol.errors import StartupError

TERMINATED: Final = 128 + signal.SIGTERM
FILES_A_PART: Final = 18


@click.command("demo")
@click.option("--workdir", metavar="DIR", help="Keep everything here; the sink is DIR/flights.db.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the story goes to stderr.")
@click.option("--keep", is_flag=True, help="Leave manager and workers running at the end.")
@click.option(
    "--flights",
    type=click.IntRange(1000, ALL_FLIGHTS),
    default=ALL_FLIGHTS,
    show_default=True,
    help="Only the first so many, for a quick look.",
)
def command(workdir: str | None, flights: int, *, as_json: bool, keep: bool) -> int:
    """Watch a herd lose a worker and no row, on the 336,776 flights that left New York in 2013.

    Starts a manager and three workers, streams the flights from small files into a database, kills a worker,
    starts another one, and at the end compares the database with the truth.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    start = time.monotonic()
    package_file()  # what is missing is told before anything is started
    folder = _workdir(workdir)
    with ExitStack() as stack:
        shown = stack.enter_context(view(sys.stderr if as_json else sys.stdout))
        herd = stack.enter_context(Herd(folder, die_with_parent=not keep))
        try:
            failover, scaling = _play(herd, folder, flights, shown)
        except HerdError as error:
            raise click.ClickException(f"{error}; logs are in {folder}") from None
        verdict = compare(folder / "flights.db", truth(flights))
        _show_verdict(verdict, shown)
        if keep:
            _keep(herd, folder, shown)
    if workdir is None and verdict.good and not keep:
        shutil.rmtree(folder)
    _print_result(verdict, failover, scaling, time.monotonic() - start, as_json=as_json)
    return DONE if verdict.good else FAILED


def _play(herd: Herd, folder: Path, flights: int, shown: View) -> tuple[Failover, Scaling]:
    url = herd.start_manager()
    shown.say(f"a manager serves at {url}; logs are in {folder}")
    for worker in FIRST_WORKERS:
        herd.start_worker(worker)
    shown.say(f"{len(FIRST_WORKERS)} workers start, each with a Spark session of its own")
    plan = demo_tasks(folder, write_parts(folder / "parts", limit=flights, files=FILES_A_PART))
    story = Story(herd, AdminClient([url]), plan, shown, partial(last_batches, folder / "flights.db"))
    story.gather()
    story.create_tasks()
    failover = story.kill_one()
    scaling = story.add_one()
    story.finish()
    return failover, scaling


def _workdir(given: str | None) -> Path:
    """The folder for everything: the given one, which must be new or empty, or a temporary one."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="sparkherd-demo-"))
    folder = Path(given).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StartupError(f"--workdir {given}: not empty; name a new folder")
    except OSError as error:
        raise StartupError(f"--workdir {given}: {error.strerror}") from None
    return folder


def _show_verdict(verdict: Comparison, shown: View) -> None:
    right = verdict.delays - verdict.wrong_delays
    shown.say(f"delays by carrier and hour: {right} of {verdict.delays} as they should be")


def _keep(herd: Herd, folder: Path, shown: View) -> None:
    pids = " ".join(str(pid) for pid in herd.processes().values())
    herd.release()
    shown.say(f"still running: the console is at {herd.url}, the sink at {folder / 'flights.db'}")
    shown.say(f"end it with: kill {pids}")


def _print_result(
    verdict: Comparison, failover: Failover, scaling: Scaling, seconds: float, *, as_json: bool
) -> None:
    if not as_json:
        click.echo(str(verdict))
        return
    print_json(_result(verdict, failover, scaling, seconds))


def _result(verdict: Comparison, failover: Failover, scaling: Scaling, seconds: float) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(verdict),
        "good": verdict.good,
        "seconds": round(seconds, 1),
        "failover": failover,
        "scaling": scaling,
    }
