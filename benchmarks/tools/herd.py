"""A manager and workers without Spark as processes, default settings, and what the workers say."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from benchmarks.tools.load import request, send_all

if TYPE_CHECKING:
    from contextlib import ExitStack

CONNECTIONS = 50
PATIENCE_S = 60.0
DEFINITION = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "out"}},
}
"""With a fence: a task without one waits for the lease of a killed worker."""


class Herd:
    """A manager process, worker processes, and what the workers say: (event, task, worker, when)."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.said: Queue[tuple[str, str, str, float]] = Queue()
        self.workers: dict[str, subprocess.Popen[str]] = {}
        database = f"sqlite+aiosqlite:///{self._folder}/bench.db"
        manager = self._run("-m", "cli", "manager", "--listen", "127.0.0.1:0", "--database", database)
        assert manager.stdout is not None
        self.url = manager.stdout.readline().split()[-1]

    def _run(self, *args: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._stack.callback(process.kill)
        return process

    def start_worker(self, name: str) -> None:
        """One more worker."""
        self.workers[name] = worker = self._run("-m", "benchmarks.tools.idle_worker", self.url, name)
        Thread(target=self._listen, args=(name, worker), daemon=True).start()

    def _listen(self, name: str, worker: subprocess.Popen[str]) -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            event, task, when = line.split()
            self.said.put((event, task, name, float(when)))

    def wait_for_starts(self, count: int) -> float:
        """When the last of so many starts was."""
        last, seen = 0.0, 0
        while seen < count:
            event, _, _, when = self.said.get(timeout=PATIENCE_S)
            if event == "started":
                last, seen = max(last, when), seen + 1
        return last

    def signal(self, name: str, number: int) -> float:
        """Send a worker a signal; returns when."""
        now = time.monotonic()
        self.workers[name].send_signal(number)
        return now

    def wait_for_joins(self, count: int) -> float:
        """When the last of so many workers began to join."""
        times = [self.said.get(timeout=PATIENCE_S) for _ in range(count)]
        return max(when for _, _, _, when in times)

    def shares(self) -> dict[str, int]:
        """How many tasks each worker owns."""
        tasks = asyncio.run(self._get("/v1/groups/bench/tasks"))["tasks"]
        owners = [task["owner"] for task in tasks]
        return {owner: owners.count(owner) for owner in set(owners)}

    async def _get(self, path: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as response:
            return await response.json()

    def wait_for_members(self, count: int) -> None:
        """Until the group is Stable with so many."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            groups = asyncio.run(self._get("/v1/groups"))["groups"]
            if groups and (groups[0]["members"], groups[0]["state"]) == (count, "Stable"):
                return
            time.sleep(0.1)
        raise TimeoutError(f"no {count} members")


def create_tasks(url: str, count: int) -> float:
    """POST each task by itself, over as many connections as heartbeats have there; returns when it began."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    bodies = (json.dumps({"task": f"t{n:03}", "definition": DEFINITION}).encode() for n in range(count))
    posts = [request(place.netloc, "/v1/groups/bench/tasks", body) for body in bodies]
    return send_all((place.hostname, place.port), posts, CONNECTIONS)
