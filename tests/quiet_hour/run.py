"""The hour: one ordinary act after the other, nobody is to be told of anything, and then of one thing."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from tests.acceptance.receiver import receiving
from tests.integration import postgres
from tests.kafka import broker
from tests.quiet_hour.ordinary import VISITOR, Ordinary
from tests.quiet_hour.stage import Stage, kinds_of
from tests.soak.feed import Feed
from tests.soak.places import Database
from tests.soak.tasks import Herd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.soak.places import Fault

FEED_S: Final = 10.0
BETWEEN_ACTS_S: Final = 30.0
REPOSITORY: Final = Path(__file__).parents[2]


@dataclass
class Outcome:
    """What was told in the hour, what was told of the task that failed after it, and which rows are wrong."""

    seconds: float = 0.0
    acts: int = 0
    rows: int = 0
    told: list[dict[str, Any]] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    told_in_the_end: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Silence, a voice that works, and every row once."""
        heard = [(each["rule"], each["subjects"][0].get("task")) for each in self.told_in_the_end]
        return not self.told and not self.remembered and heard == [("failed", "doomed")] and not self.faults


class Hour:
    """A stage, what is fed, and the clock by which it goes."""

    def __init__(self, stage: Stage, feed: Feed, chance: Random, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._feed = feed
        self._ordinary = Ordinary(stage, chance)
        self._say = say
        self._fed_at = 0.0
        self.outcome = Outcome()

    def run(self, seconds: float) -> Outcome:
        """All of it."""
        self._stage.on_look = self._feed_if_due
        self._stage.open()
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < seconds:
            act = self._ordinary.acts[self.outcome.acts % len(self._ordinary.acts)]
            act()
            self._stage.await_settled(f"all is well after {act.__name__}")
            self.outcome.acts += 1
            self._say(f"{now:6.0f} s: {act.__name__}, told {len(self._stage.told())}{self._pending()}")
            self._wait_out(BETWEEN_ACTS_S)
        self.outcome.seconds = time.monotonic() - begin
        self._end()
        return self.outcome

    def _pending(self) -> str:
        """What would ring if it went on."""
        rows = [f"{row.rule} {row.task}" for row in self._stage.remembered().alarms if not row.fired_at_ms]
        return f", pending {rows}" if rows else ""

    def _end(self) -> None:
        self.outcome.told = self._stage.told()
        rows = self._stage.remembered().alarms
        self.outcome.remembered = [f"{row.rule} {row.task} {row.state}" for row in rows if row.fired_at_ms]
        self._stage.on_look = lambda: None
        self.outcome.rows = self._feed.rows
        self._stage.wait(lambda: not self._faults(), "all rows have arrived")
        self.outcome.faults = self._faults()
        self._fail()
        self.outcome.told_in_the_end = self._stage.told()[len(self.outcome.told) :]

    def _fail(self) -> None:
        """Of a task that cannot run somebody is told: the silence was not that of a broken line."""
        self._stage.view.put("doomed", {**VISITOR, "sql": "SELECT nothing_of_that_name FROM source"})
        self._stage.wait(lambda: len(self._stage.told()) > len(self.outcome.told), "somebody is told")

    def _faults(self) -> dict[str, Fault]:
        found = {kind.name: kind.fault(self._feed.rows) for kind in self._stage.kinds}
        return {name: fault for name, fault in found.items() if any(fault)}

    def _feed_if_due(self) -> None:
        if time.monotonic() - self._fed_at > FEED_S:
            self._feed.add()
            self._fed_at = time.monotonic()

    def _wait_out(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._stage.wait(lambda: time.monotonic() >= until, "it is time")


@contextmanager
def _environment() -> Iterator[None]:
    """Of the daemons: their code is this repository's."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def run(folder: Path, seconds: float, seed: int, say: Callable[[str], None] = print) -> Outcome:
    """All of it, in `folder`; `seconds` is how long ordinary things are done, by the chances of `seed`."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        kafka = stack.enter_context(broker.running(folder / "kafka"))
        receiver = stack.enter_context(receiving())
        stack.enter_context(_environment())
        topic = kafka.topic("rows", partitions=2)
        urls = {"sqlite": f"sqlite:///{folder / 'sink.db'}", "postgres": server.url}
        databases = {name: Database(_readable(url)) for name, url in urls.items()}
        for each in databases.values():
            stack.callback(each.close)
        feed = Feed(folder / "in", topic)
        herd = Herd(feed, topic, folder / "lake", urls, databases)
        stage = Stage(folder, server.new_database("postgresql+asyncpg"), receiver, kinds_of(herd, folder))
        stack.callback(stage.stop)
        return Hour(stage, feed, Random(seed), say).run(seconds)


def _readable(url: str) -> str:
    found = sa.make_url(url)
    driver = "postgresql+psycopg" if found.drivername == "postgresql" else found.drivername
    return found.set(drivername=driver).render_as_string(hide_password=False)
