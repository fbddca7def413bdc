"""What ZooKeeper with kazoo's `SetPartitioner` takes to share tasks out anew when a member joins.

The server is the one that PySpark brings along, alone and on this machine's disk. Whoever joins makes all
members give up all they have and wait for `time_boundary`, 30 s if nobody says otherwise, for the group to be
quiet; a second here. In turn with it a worker joins ten of ours, with the settings that everybody has.
"""

from __future__ import annotations

import logging
import signal
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.herd import Herd, create_tasks
from benchmarks.tools.servers import free_port, peer_process

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMBERS = 10
TASKS = [f"t{number:03}" for number in range(900)]
BOUNDARY_S = 1.0
RUNS = 3
GOAL = 1.0
PATIENCE_S = 60.0
PAUSE_S = 0.005


class Member(threading.Thread):
    """Takes part until it is told to stop; `had` are the tasks it has now, if it has a share."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(daemon=True)
        self.had: frozenset[str] = frozenset()
        self._name = name
        self._client = KazooClient(address)
        self._over = threading.Event()

    def run(self) -> None:
        """As kazoo's documentation has it."""
        self._client.start()
        share: Any = self._client.SetPartitioner(
            "/bench", TASKS, identifier=self._name, time_boundary=BOUNDARY_S
        )
        while not self._over.wait(PAUSE_S):
            if share.release:
                self.had = frozenset()
                share.release_set()
            elif share.acquired:
                self.had = frozenset(share)
            elif share.allocating:
                share.wait_for_acquire(PAUSE_S)

    def stop(self) -> None:
        """Leave."""
        self._over.set()
        self.join()
        self._client.stop()


def measure() -> Iterator[ResultLine]:
    """From the newcomer's beginning until everything is shared by all."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        herd = _herd(stack)
        address = stack.enter_context(server())
        members = [Member(address, f"m{number}") for number in range(MEMBERS)]
        for member in members:
            member.start()
            stack.callback(member.stop)
        _wait(members)
        pairs = [(_joined(herd, f"n{run}"), _joined_theirs(address, members, run)) for run in range(RUNS)]
    ours, theirs = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    what = f"a worker joins {MEMBERS}, {len(TASKS)} tasks, against ZooKeeper with kazoo's SetPartitioner"
    boundary = f"{BOUNDARY_S:g} s of theirs is the time boundary, 30 s by default"
    note = f"{ours:.3g} s against {theirs:.3g} s; {boundary}"
    yield ResultLine(what, GOAL, *summary([mine / other for mine, other in pairs]), "times", note)


def _herd(stack: ExitStack) -> Herd:
    """Ten workers that have all the tasks."""
    herd = Herd(stack)
    for number in range(MEMBERS):
        herd.start_worker(f"w{number}")
    herd.wait_for_joins(MEMBERS)
    herd.wait_for_members(MEMBERS)
    create_tasks(herd.url, len(TASKS))
    herd.wait_for_starts(len(TASKS))
    return herd


def _joined(herd: Herd, name: str) -> float:
    """Seconds from a worker's first join to its last claim; it leaves again."""
    share = len(TASKS) // (MEMBERS + 1)
    herd.start_worker(name)
    joining = herd.wait_for_joins(1)
    seconds = herd.wait_for_starts(share) - joining
    herd.signal(name, signal.SIGTERM)
    herd.wait_for_starts(share)
    herd.workers[name].wait()
    return seconds


def _joined_theirs(address: str, members: list[Member], run: int) -> float:
    """Seconds from the newcomer's beginning until ZooKeeper's members share all tasks; it leaves again."""
    newcomer = Member(address, f"newcomer{run}")
    began = time.monotonic()
    newcomer.start()
    seconds = _wait([*members, newcomer]) - began
    newcomer.stop()
    _wait(members)
    return seconds


@contextmanager
def server() -> Iterator[str]:
    """A ZooKeeper of its own; gives HOST:PORT."""
    address = f"127.0.0.1:{(port := free_port())}"
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    with tempfile.TemporaryDirectory() as folder:
        command = ["java", "-cp", jars, "-Dzookeeper.admin.enableServer=false"]
        command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(port), folder, "2000"]
        with peer_process(command, lambda: _try(address), (KazooTimeoutError, KazooException)):
            yield address


def _try(address: str) -> None:
    client = KazooClient(address)
    try:
        client.start(timeout=2)
    finally:
        client.stop()


def _wait(members: list[Member]) -> float:
    """When every task is somebody's, and everybody has some."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        shares = [member.had for member in members]
        if all(shares) and sum(map(len, shares)) == len(TASKS):
            return time.monotonic()
        time.sleep(PAUSE_S)
    raise TimeoutError("ZooKeeper's members did not settle")
