"""Two plain drivers with a warm Spark each, between which an operator moves queries by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.peers.spark_operator import PROGRESS, create_tables
from benchmarks.tools.moved_queries import TASKS
from benchmarks.tools.standstill import watching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from benchmarks.tools.standstill import Gap

PATIENCE_S: Final = 240.0
LOOK_S: Final = 0.05
Order = dict[str, "Mapping[str, int] | Sequence[str]"]


class PlainDrivers:
    """Two processes of `peers/spark_operator.py`; the first one has the even tasks at first."""

    def __init__(self, stack: ExitStack, folder: Path, database: str) -> None:
        folder.mkdir()
        create_tables(database, TASKS)
        self._watch = stack.enter_context(watching(database, PROGRESS))
        self._attempts = dict.fromkeys(TASKS, 1)
        command = ["-m", "benchmarks.peers.spark_operator", database, str(folder)]
        self._drivers = [_driver(stack, command, folder / f"stderr{number}") for number in (0, 1)]
        for driver in self._drivers:
            _heard(driver)
        self._tell([{"start": dict.fromkeys(TASKS[number::2], 1)} for number in (0, 1)])
        self._wait()

    def move(self, tasks: Sequence[str], back: Sequence[str] = ()) -> list[Gap]:
        """Stop them all at once and start them in the other driver; their gaps.

        Args:
            tasks: from the first driver to the second.
            back: from the second to the first, at the same time.
        """
        for task in (*tasks, *back):
            self._attempts[task] += 1
        self._tell([{"stop": list(tasks)}, {"stop": list(back)}])
        self._tell([{"start": {task: self._attempts[task] for task in each}} for each in (back, tasks)])
        self._wait()
        return self._watch.taken()

    def _tell(self, orders: Sequence[Order]) -> None:
        """Give each driver its order, and wait until both are carried out."""
        for driver, order in zip(self._drivers, orders, strict=True):
            assert driver.stdin is not None
            driver.stdin.write(f"{json.dumps(order)}\n")
            driver.stdin.flush()
        for driver in self._drivers:
            _heard(driver)

    def _wait(self) -> None:
        """Until each has written a batch since it was started last."""
        deadline = time.monotonic() + PATIENCE_S
        while self._watch.tokens() != self._attempts:
            if time.monotonic() > deadline:
                raise TimeoutError(f"plain queries have not written: {self._watch.tokens()}")
            time.sleep(LOOK_S)


def _driver(stack: ExitStack, command: list[str], errors: Path) -> subprocess.Popen[str]:
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True
        )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _heard(driver: subprocess.Popen[str]) -> None:
    line = driver.stdout.readline() if driver.stdout else ""
    if line != "{}\n":
        raise RuntimeError(f"a plain driver ended or said {line!r}")
