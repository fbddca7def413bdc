"""The demo's story, step by step; every wait watches the herd and gives up when nothing moves any more."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

import msgspec

from cli.client.admin_client import path_of
from cli.demo.herd import GROUP, Herd, HerdError
from cli.demo.lag_history import LagHistory
from cli.demo.snapshot import Snapshot, snapshot
from protocol.messages.tasks import CreateTaskRequest, TaskResponse
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.admin_client import AdminClient
    from cli.demo.flight_topic import FlightTopic
    from cli.demo.plan import Plan
    from cli.demo.sink_rows import SinkRows
    from cli.demo.view import View

POLL_S: Final = 0.2
STALLED_S: Final = 120.0
FIRST_WORKERS: Final = ("worker-1", "worker-2", "worker-3")
NEW_WORKER: Final = "worker-4"
HALF_WAY: Final = 0.5
BROKER_AWAY_S: Final = 3.0
DRAWN: Final = 60


@dataclass(frozen=True, slots=True)
class Failover:
    """What the killing of a worker led to; seconds are counted from the kill."""

    killed: str
    orphans: list[str]
    seconds: float
    untouched: list[str]
    disturbed: list[str]


@dataclass(frozen=True, slots=True)
class Scaling:
    """What the arrival of a worker led to."""

    moved: list[str]
    untouched: list[str]
    disturbed: list[str]


@dataclass(frozen=True, slots=True)
class BrokerRestart:
    """The broker was killed with that share of the flights produced, and was away for so many seconds."""

    share_produced: float
    seconds: float


class Story:
    """Carries the steps out on a herd, telling them to a view.

    `written` counts the rows of the sink; `lags` is how far all tasks were behind, for as long as they were
    watched.
    """

    def __init__(self, herd: Herd, client: AdminClient, plan: Plan, view: View, written: SinkRows) -> None:
        self.lags = LagHistory()
        self._herd = herd
        self._client = client
        self._plan = plan
        self._view = view
        self._written = written

    def gather(self) -> None:
        """Wait until all workers are members."""
        try:
            self._until(lambda now: now.stable and len(now.workers) == len(FIRST_WORKERS))
        except HerdError as error:
            raise HerdError(f"the workers did not form a group: {error}") from None

    def create_tasks(self) -> None:
        """Create all tasks, and wait until each runs."""
        for task in self._plan.tasks:
            body = CreateTaskRequest(
                task=task.name, definition=msgspec.Raw(msgspec.json.encode(task.definition))
            )
            self._client.call("POST", path_of("groups", GROUP, "tasks"), body, into=TaskResponse)
        self._view.say(f"{len(self._plan.tasks)} tasks created")
        self._until(lambda now: now.stable and all(task.running for task in now.tasks.values()))
        self._view.say("all of them run")

    def kill_one(self, at: float = HALF_WAY) -> Failover:
        """With that share of rows written, kill the worker with most tasks; wait until they run elsewhere."""
        before = self._until(lambda now: now.share_done >= at)
        victim = max(FIRST_WORKERS, key=lambda worker: (len(before.owned_by(worker)), worker))
        orphans = before.owned_by(victim)
        self._herd.kill_worker(victim)
        start = monotonic()
        self._view.say(f"{victim} is killed (SIGKILL); it ran {', '.join(orphans)}")
        after = self._until(lambda now: all(_runs_elsewhere(now, before, task) for task in orphans))
        seconds = monotonic() - start
        self._view.say(f"its tasks run elsewhere, {seconds:.1f} s after the kill")
        untouched, disturbed = _compare(before, after, set(before.tasks) - set(orphans))
        self._tell_of_the_others(untouched, disturbed)
        return Failover(victim, orphans, round(seconds, 2), untouched, disturbed)

    def add_one(self) -> Scaling:
        """Start another worker; wait until it runs what it was given."""
        before = self._until(lambda now: now.stable)
        self._herd.start_worker(NEW_WORKER)
        self._view.say(f"{NEW_WORKER} starts")
        after = self._until(_arrived)
        moved = [name for name in after.tasks if _moved_to_new(before, after, name)]
        untouched, disturbed = _compare(before, after, set(after.tasks) - set(moved))
        self._view.say(f"{len(moved)} tasks moved to {NEW_WORKER}: {', '.join(moved)}")
        self._tell_of_the_others(untouched, disturbed)
        return Scaling(moved, untouched, disturbed)

    def restart_broker(self, topic: FlightTopic) -> BrokerRestart:
        """While the second half of the flights arrives, kill the broker, and start it again where it was."""
        topic.go_on()
        self._until(lambda _: topic.share_produced > HALF_WAY)
        share = topic.share_produced
        topic.kill_broker()
        start = monotonic()
        self._view.say(f"the broker is killed (SIGKILL), with {share:.0%} of the flights produced")
        self._until(lambda _: monotonic() - start > BROKER_AWAY_S)
        topic.launch_broker()
        self._until(lambda _: topic.broker.takes_requests())
        seconds = monotonic() - start
        self._view.say(f"it was started again and takes requests, {seconds:.1f} s after the kill")
        return BrokerRestart(round(share, 3), round(seconds, 2))

    def finish(self) -> None:
        """Wait until every row is written."""
        self._until(lambda now: now.share_done >= 1)
        self._view.say("all rows are written")

    def catch_up(self) -> None:
        """Wait until every task says that it has read its topic to the end."""
        self._until(lambda now: all(task.lag == 0 for task in now.tasks.values()))
        self._view.say(f"lag {self.lags}, at most {self.lags.most or 0:,}  {self.lags.drawn(DRAWN)}")

    def _tell_of_the_others(self, untouched: list[str], disturbed: list[str]) -> None:
        self._view.say(f"the other {len(untouched) + len(disturbed)}: {len(untouched)} never stopped")
        if disturbed:
            self._view.say(f"moved without need: {', '.join(disturbed)}")

    def _until(self, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Watch until `condition` holds; raises `HerdError` on a failure or when nothing moves any more."""
        last: Snapshot | None = None
        moved_at = monotonic()
        while True:
            self._herd.require_alive()
            now = snapshot(self._client, GROUP, self._plan, self._written.by_task())
            self.lags.add(monotonic(), now.lag)
            self._view.show(now, self.lags)
            _require_no_failure(now)
            if condition(now):
                return now
            if now != last:
                last, moved_at = now, monotonic()
            elif monotonic() - moved_at > STALLED_S:
                raise HerdError(f"nothing has changed for {STALLED_S:.0f} s")
            sleep(POLL_S)


def _require_no_failure(now: Snapshot) -> None:
    for task in now.tasks.values():
        if task.state is TaskState.FAILED:
            raise HerdError(f"{task.name} is FAILED: {task.cause}")


def _runs_elsewhere(now: Snapshot, before: Snapshot, name: str) -> bool:
    """Whether a task runs under another token than before, and so at another owner."""
    return now.tasks[name].running and now.tasks[name].token > before.tasks[name].token


def _arrived(now: Snapshot) -> bool:
    """Whether the new worker has its share and all of it runs."""
    mine = now.owned_by(NEW_WORKER)
    return now.stable and bool(mine) and all(task.running for task in now.tasks.values())


def _moved_to_new(before: Snapshot, after: Snapshot, name: str) -> bool:
    return after.tasks[name].owner == NEW_WORKER and before.tasks[name].token != after.tasks[name].token


def _compare(before: Snapshot, after: Snapshot, names: set[str]) -> tuple[list[str], list[str]]:
    """The tasks of `names` that kept their token, and the ones that changed hands."""
    kept = {name for name in names if before.tasks[name].token == after.tasks[name].token}
    return sorted(kept), sorted(names - kept)
