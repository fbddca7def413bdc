"""What the runtime tells as it happens, counted."""

from __future__ import annotations

import re
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from manager.metrics import catalog
from manager.metrics.facts import DepartureKind, GroupForgotten, MemberGone, RebalanceCause, Rebalanced
from protocol.errors import ErrorCode, Failure
from protocol.messages.alarm_notice import Severity
from protocol.messages.ownership import ReleaseRequest, ReportRequest, TaskErrorsResponse
from telemetry.loop_lag import LOOP_LAG, LoopLag
from telemetry.metrics import Instruments, family

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manager.core.stored_rows import AlarmRow
    from manager.core.turn import Outcome
    from manager.metrics.facts import Fact
    from protocol.messages.base import Request
    from telemetry.metrics import Family

LeaseChange = Literal["taken", "handed_over", "lost"]
MessageResult = Literal["taken", "refused", "given_up"]

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Meter:
    """The instruments of one manager.

    Requests are counted in a plain dictionary and read at a scrape: an instrument of Prometheus's has a lock,
    which costs more than all the rest, and all of this happens in one thread.
    """

    def __init__(self) -> None:
        self.instruments = Instruments()
        make = self.instruments
        self._answered: Counter[tuple[type[Request], ErrorCode]] = Counter()
        make.read_at_scrape(self)
        self._stale = make.counter(catalog.STALE_TOKENS)
        self._rebalances = make.counter(catalog.REBALANCES)
        self._rebalance_seconds = make.histogram(catalog.REBALANCE_SECONDS)
        self._moved = make.counter(catalog.TASKS_MOVED)
        self._gone = make.counter(catalog.MEMBERS_GONE)
        self._commit_seconds = make.histogram(catalog.COMMIT_SECONDS)
        self._commit_failures = make.counter(catalog.COMMIT_FAILURES)
        self._rows = make.counter(catalog.COMMITTED_ROWS)
        self._leases = make.counter(catalog.LEASE_CHANGES)
        self._alarm_messages = make.counter(catalog.ALARM_MESSAGES)
        self._receiver_away = make.gauge(catalog.RECEIVER_AWAY)
        self._herd_alarms = make.gauge(catalog.HERD_ALARMS_FIRING)
        self._bugs = make.counter(catalog.BUGS)
        self._known: set[str] = set()
        self.loop_lag = LoopLag(make.histogram(LOOP_LAG))
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """A series that begins with its first event hides that event from `increase`."""
        for asked in (ReportRequest, ReleaseRequest):
            self._stale.labels(_name(asked))
        for change in ("taken", "handed_over", "lost"):
            self._leases.labels(change)

    def answered(self, asked: type[Request], outcome: Outcome) -> None:
        """A request has its answer."""
        code = outcome.code if isinstance(outcome, Failure) else ErrorCode.NONE
        self._answered[asked, code] += 1
        if isinstance(outcome, TaskErrorsResponse):
            self._count_stale(asked, outcome)

    def collect(self) -> Iterator[Family]:
        """What was counted here, as Prometheus's collector."""
        requests = family(catalog.REQUESTS)
        for (asked, code), count in self._answered.items():
            requests.add_metric((_name(asked), code.name), count)
        yield requests

    def _count_stale(self, asked: type[Request], outcome: TaskErrorsResponse) -> None:
        stale = sum(code == ErrorCode.STALE_TOKEN for code in outcome.tasks.values())
        if stale:
            self._stale.labels(_name(asked)).inc(stale)

    def know(self, group: str) -> None:
        """A group has come into being, or was taken up."""
        if group in self._known:
            return
        self._known.add(group)
        self._moved.labels(group)
        for cause in RebalanceCause:
            self._rebalances.labels(group, cause)
        for how in DepartureKind:
            self._gone.labels(group, how)

    def count(self, facts: Iterable[Fact]) -> None:
        """What turns have come to."""
        for fact in facts:
            match fact:
                case Rebalanced(cause, line):
                    self._rebalances.labels(line.group, cause).inc()
                    self._rebalance_seconds.observe(line.duration_ms / 1000)
                    self._moved.labels(line.group).inc(line.moved)
                case MemberGone(group=group, how=how):
                    self._gone.labels(group, how).inc()
                case GroupForgotten(group):
                    self.forget(group)

    def forget(self, group: str) -> None:
        """The series of a group end that is gone, or another manager's: there may be any number of them."""
        self._known.discard(group)
        for counter in (self._rebalances, self._gone, self._moved):
            counter.remove_by_labels({"group": group})

    @contextmanager
    def commit(self, rows: int) -> Iterator[None]:
        """Around one transaction."""
        began = time.perf_counter()
        try:
            yield
        except Exception:
            self._commit_failures.inc()
            raise
        else:
            self._rows.inc(rows)
        finally:
            self._commit_seconds.observe(time.perf_counter() - began)

    def bug(self) -> None:
        """Something raised that never should."""
        self._bugs.inc()

    def know_receiver(self, receiver: str) -> None:
        """This manager tells a receiver of alarms."""
        self._receiver_away.labels(receiver)
        for result in ("taken", "refused", "given_up"):
            self._alarm_messages.labels(receiver, result)

    def told_receiver(self, receiver: str, result: MessageResult) -> None:
        """A message to a receiver of alarms has come to this."""
        self._alarm_messages.labels(receiver, result).inc()

    def receiver_is_away(self, receiver: str, *, is_away: bool) -> None:
        """Whether a receiver that this manager tells is away."""
        self._receiver_away.labels(receiver).set(is_away)

    def forget_receiver(self, receiver: str) -> None:
        """Another manager tells it by now, or nobody does."""
        self._receiver_away.remove_by_labels({"receiver": receiver})

    def herd_alarms_fire(self, firing: Iterable[AlarmRow] | None) -> None:
        """What fires of no group, by the last look; None while another manager looks."""
        if firing is None:
            self._herd_alarms.clear()
            return
        counts = Counter(row.severity for row in firing)
        for severity in Severity:
            self._herd_alarms.labels(severity.value).set(counts[severity.value])

    def lease_changed(self, change: LeaseChange, slots: int) -> None:
        """Slots of groups have come to this manager, or left it."""
        self._leases.labels(change).inc(slots)


def _name(asked: type[Request]) -> str:
    """`commit_offsets` of a `CommitOffsetsRequest`."""
    return _WORD.sub("_", asked.__name__.removesuffix("Request")).lower()
