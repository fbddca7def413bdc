"""The workers of a trial: who ends is noted down and started again, as the units in `deploy/systemd` do."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.acceptance.group_view import GROUP
from tests.acceptance.harms.jvms import is_over, jvms
from tests.acceptance.processes import Daemon, worker_args

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

    from tests.acceptance.processes import Herd

HEAP_MB: Final = 512
"""Of a JVM that one task has; one that all share has what every worker of these tests has."""


class Death(NamedTuple):
    """The end of a worker that nobody had asked for: when, in seconds, and its exit code."""

    at: float
    worker: str
    code: int


class ReadWorker(Daemon):
    """A worker whose output somebody reads, as systemd does: a full pipe would stop it."""

    def start(self) -> subprocess.Popen[str]:
        """Start it, anew too."""
        process = super().start()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with (
            (self._folder / f"{self.name}.out").open("a") as file,
            process.stdout,
            suppress(ValueError),  # whoever has stopped the worker has closed its output
        ):
            shutil.copyfileobj(process.stdout, file)

    def _gone(self) -> int:
        return self.process.wait()


class Keeper:
    """Starts the workers, again and again."""

    def __init__(self, herd: Herd, folder: Path, flags: Sequence[str], *, isolate: bool) -> None:
        own = ("--isolate", "--isolate-memory-mb", str(HEAP_MB)) if isolate else ()
        self.deaths: list[Death] = []
        self.ended_jvms: Counter[str] = Counter()
        self._jvms: set[tuple[str, int]] = set()
        self._herd = herd
        self._folder = folder
        self._flags = (*flags, *own)

    def start(self, name: str) -> None:
        """A worker that is not there yet."""
        args = worker_args(name, self._herd.manager.url, GROUP, self._folder)
        self._herd.workers[name] = ReadWorker(name, [*args, *self._flags], self._folder)

    def restart(self, name: str) -> None:
        """In order, as for an upgrade."""
        self._herd.workers[name].terminate()
        self._herd.workers[name].start()

    def look(self, at: float) -> None:
        """Note who has ended, and start workers that have."""
        for name, worker in self._herd.workers.items():
            if (code := worker.process.poll()) is not None:
                self.deaths.append(Death(at, name, code))
                worker.start()
        for name, worker in self._herd.workers.items():
            self._jvms.update(jvms(name, worker.process.pid))
        ended = {found for found in self._jvms if is_over(found[1])}
        self.ended_jvms.update(what for what, _ in ended)
        self._jvms -= ended

    def log_bytes(self) -> int:
        """What all of them have logged and printed."""
        return sum(
            path.stat().st_size
            for name in self._herd.workers
            for path in self._folder.glob(f"{name}.*")
            if path.suffix in {".log", ".out"}
        )
