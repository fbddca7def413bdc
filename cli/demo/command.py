"""`sparkherd demo`: sets the scene, has the story played, and compares the sink with the truth."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from cli.demo.check import Comparison, compare
from cli.demo.data import ALL_FLIGHTS, package_file
from cli.demo.delta_sink import DeltaSink
from cli.demo.flight_topic import FlightTopic, KafkaJars
from cli.demo.herd import Herd, HerdError
from cli.demo.kafka_broker import BrokerError
from cli.demo.plays import Outcome, play_files, play_kafka
from cli.demo.sql_sink import SqlSink
from cli.demo.truth import truth
from cli.demo.view import View, view
from cli.exit_codes import DONE, FAILED
from cli.views.output import print_json
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.demo.plan import DemoSink

TERMINATED: Final = 128 + signal.SIGTERM
JARS: Final = "jars"


@click.command("demo")
@click.option(
    "--workdir", metavar="DIR", help="Keep everything here; the sink is DIR/flights.db or DIR/lake."
)
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
    "--sink",
    "sink_format",
    type=click.Choice(["sql", "delta"]),
    default="sql",
    show_default=True,
    help="Where the rows go: a database of SQLite, or tables of Delta Lake, read back by `deltalake`.",
)
@click.option(
    "--jars",
    metavar="FOLDER",
    help="For --sink delta, what `make jars` makes; otherwise Spark fetches Delta from Maven Central.",
)
@click.option(
    "--flights",
    type=click.IntRange(1000, ALL_FLIGHTS),
    default=ALL_FLIGHTS,
    show_default=True,
    help="Only the first so many, for a quick look.",
)
def command(  # the options of the command line
    workdir: str | None,
    flights: int,
    kafka: str | None,
    sink_format: str,
    jars: str | None,
    *,
    as_json: bool,
    keep: bool,
) -> int:
    """Watch a herd lose a worker and no row, on the 336,776 flights that left New York in 2013.

    Starts a manager and three workers, streams the flights from small files into a database, kills a worker,
    starts another one, and at the end compares the database with the truth. With --kafka, the flights arrive
    in a topic of a Kafka broker of its own, which is killed and started again half-way. With --sink delta, it
    ends with a Delta table, and says how to query it.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    start = time.monotonic()
    package_file()  # what is missing is told before anything is started
    broker = None if kafka is None else KafkaJars(kafka)
    folder = _workdir(workdir)
    sink: DemoSink = SqlSink(folder) if sink_format == "sql" else DeltaSink(folder, jars)
    with ExitStack() as stack:
        shown = stack.enter_context(view(sys.stderr if as_json else sys.stdout))
        herd, topic = _processes(stack, folder, broker, sink, flights, die_with_parent=not keep)
        outcome = _play(herd, topic, folder, sink, flights=flights, shown=shown)
        verdict = compare(sink, truth(flights))
        _show_verdict(verdict, shown)
        if keep:
            _keep(herd, topic, sink, shown)
    if workdir is None and verdict.good and not keep and not sink.how_to_read:
        shutil.rmtree(folder)
    _print_result(verdict, outcome, sink.how_to_read, time.monotonic() - start, as_json=as_json)
    return DONE if verdict.good else FAILED


def _processes(
    stack: ExitStack,
    folder: Path,
    jars: KafkaJars | None,
    sink: DemoSink,
    flights: int,
    *,
    die_with_parent: bool,
) -> tuple[Herd, FlightTopic | None]:
    """What starts them, and ends them with the stack: the broker after those that read from it."""
    if jars is None:
        herd = Herd(folder, die_with_parent=die_with_parent, worker_flags=sink.worker_flags)
        return stack.enter_context(herd), None
    topic = FlightTopic(jars, folder, flights, die_with_parent=die_with_parent)
    stack.enter_context(topic)
    herd = Herd(
        folder, die_with_parent=die_with_parent, worker_flags=(*jars.worker_flags, *sink.worker_flags)
    )
    return stack.enter_context(herd), topic


def _play(
    herd: Herd, topic: FlightTopic | None, folder: Path, sink: DemoSink, *, flights: int, shown: View
) -> Outcome:
    try:
        if topic is None:
            return play_files(herd, folder, sink, flights, shown)
        return play_kafka(herd, folder, sink, topic, shown)
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


def _keep(herd: Herd, topic: FlightTopic | None, sink: DemoSink, shown: View) -> None:
    pids = [*herd.processes().values(), *([topic.broker.pid] if topic else [])]
    herd.release()
    if topic:
        topic.release()
        shown.say(f"still running: the Kafka broker at {topic.broker.bootstrap}")
    shown.say(f"still running: the console is at {herd.url}, the sink at {sink.place}")
    shown.say(f"end it with: kill {' '.join(map(str, pids))}")


def _print_result(
    verdict: Comparison, outcome: Outcome, how_to_read: Sequence[str], seconds: float, *, as_json: bool
) -> None:
    if as_json:
        more = {"how_to_read": how_to_read} if how_to_read else {}
        print_json(_result(verdict, outcome, seconds) | more)
        return
    for line in (*how_to_read, str(verdict)):
        click.echo(line)


def _result(verdict: Comparison, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """What of the outcome the play had no part for is left out."""
    return {
        **msgspec.structs.asdict(verdict),
        "good": verdict.good,
        "seconds": round(seconds, 1),
        **{name: value for name, value in msgspec.to_builtins(outcome).items() if value is not None},
    }
