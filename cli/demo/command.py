"""`sparkherd demo`: sets the scene, has the story played, and compares the sink with the truth."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cli.demo.check import Comparison, compare
from cli.demo.data import ALL_FLIGHTS, package_file
from cli.demo.flight_topic import FlightTopic, KafkaJars
from cli.demo.herd import Herd, HerdError
from cli.demo.kafka_broker import BrokerError
from cli.demo.plan import sink_file
from cli.demo.plays import Outcome, play_files, play_kafka
from cli.demo.truth import truth
from cli.demo.view import View, view
from cli.exit_codes import DONE, FAILED
from cli.views.output import print_json
from protocol.errors import StartupError

TERMINATED: Final = 128 + signal.SIGTERM
JARS: Final = "jars"


@click.command("demo")
@click.option("--workdir", metavar="DIR", help="Keep everything here; the sink is DIR/flights.db.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the story goes to stderr.")
@click.option("--keep", is_flag=True, help="Leave manager, workers and broker running at the end.")
@click.option(
    "--kafka",
    is_flag=False,
    flag_value=JARS,
    metavar="[FOLDER]",
    help="Read the flights from a Kafka topic, whose broker is restarted half-way; FOLDER is what `make jars`"
    f" makes, ./{JARS} unless named.",
)
@click.option(
    "--flights",
    type=click.IntRange(1000, ALL_FLIGHTS),
    default=ALL_FLIGHTS,
    show_default=True,
    help="Only the first so many, for a quick look.",
)
def command(workdir: str | None, flights: int, kafka: str | None, *, as_json: bool, keep: bool) -> int:
    """Watch a herd lose a worker and no row, on the 336,776 flights that left New York in 2013.

    Starts a manager and three workers, streams the flights from small files into a database, kills a worker,
    starts another one, and at the end compares the database with the truth. With --kafka, the flights arrive
    in a topic of a Kafka broker of its own, which is killed and started again half-way.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    start = time.monotonic()
    package_file()  # what is missing is told before anything is started
    jars = None if kafka is None else KafkaJars(kafka)
    folder = _workdir(workdir)
    with ExitStack() as stack:
        shown = stack.enter_context(view(sys.stderr if as_json else sys.stdout))
        herd, topic = _processes(stack, folder, jars, flights, die_with_parent=not keep)
        outcome = _play(herd, topic, folder, flights, shown)
        verdict = compare(sink_file(folder), truth(flights))
        _show_verdict(verdict, shown)
        if keep:
            _keep(herd, topic, folder, shown)
    if workdir is None and verdict.good and not keep:
        shutil.rmtree(folder)
    _print_result(verdict, outcome, time.monotonic() - start, as_json=as_json)
    return DONE if verdict.good else FAILED


def _processes(
    stack: ExitStack, folder: Path, jars: KafkaJars | None, flights: int, *, die_with_parent: bool
) -> tuple[Herd, FlightTopic | None]:
    """What starts them, and ends them with the stack: the broker after those that read from it."""
    if jars is None:
        return stack.enter_context(Herd(folder, die_with_parent=die_with_parent)), None
    topic = FlightTopic(jars, folder, flights, die_with_parent=die_with_parent)
    stack.enter_context(topic)
    herd = Herd(folder, die_with_parent=die_with_parent, worker_flags=jars.worker_flags)
    return stack.enter_context(herd), topic


def _play(herd: Herd, topic: FlightTopic | None, folder: Path, flights: int, shown: View) -> Outcome:
    try:
        if topic is None:
            return play_files(herd, folder, flights, shown)
        return play_kafka(herd, folder, topic, shown)
    except (HerdError, BrokerError) as error:
        raise click.ClickException(f"{error}; logs are in {folder}") from None


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


def _keep(herd: Herd, topic: FlightTopic | None, folder: Path, shown: View) -> None:
    pids = [*herd.processes().values(), *([topic.broker.pid] if topic else [])]
    herd.release()
    if topic:
        topic.release()
        shown.say(f"still running: the Kafka broker at {topic.broker.bootstrap}")
    shown.say(f"still running: the console is at {herd.url}, the sink at {sink_file(folder)}")
    shown.say(f"end it with: kill {' '.join(map(str, pids))}")


def _print_result(verdict: Comparison, outcome: Outcome, seconds: float, *, as_json: bool) -> None:
    if not as_json:
        click.echo(str(verdict))
        return
    print_json(_result(verdict, outcome, seconds))


def _result(verdict: Comparison, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """What of the outcome the play had no part for is left out."""
    return {
        **msgspec.structs.asdict(verdict),
        "good": verdict.good,
        "seconds": round(seconds, 1),
        **{name: value for name, value in msgspec.to_builtins(outcome).items() if value is not None},
    }
