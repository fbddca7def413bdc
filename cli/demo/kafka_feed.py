"""Flights that arrive in a topic at a pace, put there by Kafka's own console producer."""

from __future__ import annotations

import subprocess
import time
from itertools import islice
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

KEY_END: Final = b"\t"
AT_ONCE: Final = 500
"""Records that are handed to the producer together."""

STOP_S: Final = 30.0
NOT_SENT: Final = "ERROR"
"""The producer goes on after a record that could not be sent, and logs it at this level."""

PRODUCER: Final = {
    "enable.idempotence": "true",
    "acks": "all",
    # A broker that is away is waited for, longer than the demo lasts: none is dropped, and none sent twice.
    "retries": "2147483647",
    "delivery.timeout.ms": "600000",
    "max.block.ms": "600000",
    "request.timeout.ms": "10000",
    "retry.backoff.ms": "100",
    "reconnect.backoff.max.ms": "500",
    "linger.ms": "50",
    "batch.size": "65536",
    "compression.type": "lz4",
}


def producer_words(topic: str) -> list[str]:
    """What the console producer is started with, to read a key, a tab and a value from each line."""
    settings = (f"{key}={value}" for key, value in PRODUCER.items())
    return [
        *("--topic", topic),
        *(word for setting in settings for word in ("--command-property", setting)),
        *("--reader-property", "parse.key=true"),
    ]


class Feed:
    """Hands records to a producer, in a thread of its own; as a context manager it leaves no process behind.

    Args:
        command: of the producer, which reads lines.
        records: keys and values.
        count: how many there are.
        seconds: how long they take to be handed over, if the producer keeps up.
        log: where the producer's words go.
    """

    def __init__(
        self,
        command: Sequence[str],
        records: Iterable[tuple[bytes, bytes]],
        *,
        count: int,
        seconds: float,
        log: Path,
    ) -> None:
        self._command = command
        self._records = records
        self._count = count
        self._pause_s = seconds * AT_ONCE / count
        self._log = log
        self._fed = 0
        self._second_half = Event()
        self._closing = Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._second_half.set()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._thread.join(STOP_S)

    def start(self) -> None:
        """Begin with the first half."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        self._thread.start()

    def go_on(self) -> None:
        """Do not stop when half of the records are there, where it otherwise waits for this."""
        self._second_half.set()

    @property
    def share(self) -> float:
        """The share of the records that was handed over, 0 to 1."""
        return self._fed / self._count

    def trouble(self) -> str | None:
        """Why not all records will be in the topic; None if there is no such reason."""
        code = None if self._process is None else self._process.poll()
        if code is not None and (code != 0 or self._fed < self._count):
            return f"the producer ended with exit code {code} (see {self._log})"
        if self._log.exists() and NOT_SENT in self._log.read_text(encoding="utf-8", errors="replace"):
            return f"the producer could not send a record (see {self._log})"
        return None

    def _run(self) -> None:
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        try:
            with self._process.stdin as stdin:
                for lines in self._paced():
                    stdin.write(b"".join(lines))
                    stdin.flush()
                    self._fed += len(lines)
        except OSError:  # the producer has ended, which its exit code tells
            return

    def _paced(self) -> Iterator[list[bytes]]:
        """Some lines after another, each when it is due; time that was waited is not made up for."""
        lines = (key + KEY_END + value + b"\n" for key, value in self._records)
        due = time.monotonic()
        while some := list(islice(lines, AT_ONCE)):
            if self._fed * 2 >= self._count:
                self._second_half.wait()
            due = max(due + self._pause_s, time.monotonic())
            if self._closing.wait(due - time.monotonic()):
                return
            yield some
