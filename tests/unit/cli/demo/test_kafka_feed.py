"""What hands records to a producer, which is a process that keeps lines: halves, and what goes wrong."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from cli.demo import kafka_feed
from cli.demo.kafka_feed import Feed, producer_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMEOUT_S = 60.0
COUNT = 10 * kafka_feed.AT_ONCE
RECORDS = [(b"k%d" % number, b'{"n": %d}' % number) for number in range(COUNT)]
KEEPING = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, open('lines', 'wb'))"
ENDING = "import sys; sys.stdin.readline(); sys.exit(3)"
DROPPING = "import sys; sys.stdin.read(); print('ERROR ErrorLoggingCallback: Error when sending', flush=True)"


def feed(folder: Path, script: str) -> Feed:
    """One that makes no pauses."""
    script = script.replace("'lines'", repr(str(folder / "lines")))
    command = [sys.executable, "-c", script]
    return Feed(command, RECORDS, count=COUNT, seconds=0, log=folder / "producer.log")


def until(condition: Callable[[], object]) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline


def test_the_second_half_waits(tmp_path: Path) -> None:
    """Half of the records are handed over, and the rest once it is told to go on; each once and in order."""
    with feed(tmp_path, KEEPING) as fed:
        fed.start()
        until(lambda: fed.share >= 0.5)
        assert fed.share == 0.5
        fed.go_on()
        until(lambda: fed.share == 1.0)
        until(lambda: (tmp_path / "lines").read_bytes().count(b"\n") == COUNT)
        assert fed.trouble() is None
    lines = (tmp_path / "lines").read_bytes().splitlines()
    assert lines == [key + b"\t" + value for key, value in RECORDS]


@pytest.mark.parametrize(
    ("script", "trouble"),
    [(ENDING, "the producer ended with exit code 3"), (DROPPING, "the producer could not send a record")],
)
def test_a_producer_that_does_not_send_all_is_trouble(tmp_path: Path, script: str, trouble: str) -> None:
    """One that ends before it has all, and one that goes on after a record; where its words are is told."""
    with feed(tmp_path, script) as fed:
        fed.start()
        fed.go_on()
        until(fed.trouble)
        assert fed.trouble() == f"{trouble} (see {tmp_path / 'producer.log'})"


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Whoever leaves in the middle ends the producer, and what feeds it."""
    with feed(tmp_path, KEEPING) as fed:
        fed.start()
        until(lambda: fed.share >= 0.5)
    assert fed.share == 0.5
    assert fed.trouble() is not None
    with feed(tmp_path, KEEPING) as never_started:
        assert never_started.trouble() is None


def test_no_record_is_given_up_or_sent_twice() -> None:
    """The producer tries again for longer than any restart takes, and brokers know what they have."""
    words = producer_words("flights")
    assert words[:2] == ["--topic", "flights"]
    for setting in ("enable.idempotence=true", "acks=all", "delivery.timeout.ms=600000"):
        assert words[words.index(setting) - 1] == "--command-property"
