"""Kafka's own client in the worker's JVM: kept from one question to the next, counted, and let go of.

It is the one that Spark's connector brought, so a source's own settings are the right ones for it, TLS, SASL
and plugged-in classes included.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from py4j.protocol import Py4JError, Py4JJavaError

from telemetry.scope import in_scope
from telemetry.secrets import scrub
from worker.query_engine import QueryError
from worker.spark.causes import describe
from worker.spark.remedies import Judged, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from worker.spark.kafka.brokers import Question

TIMEOUT_MS: Final = 10_000
"""How long a broker may take to answer, connection included."""
GRACE_MS: Final = 2000
"""How much longer its client may take to say that there was no answer."""
SILENT_S: Final = 5.0
"""A cluster that has not answered is not asked again sooner: tasks of one would wait one after another."""
IDLE_S: Final = 300.0
"""A client that nobody has needed for so long is closed: no task names its cluster any more."""
SWEEP_S: Final = 60.0
"""How often such clients are looked for while there are any."""
MOST_CLIENTS: Final = 16
"""Clients that are kept for the next question; each is a thread and a connection to each broker."""
MOST_SHOWN: Final = 100
"""Characters of a list of brokers in a cause."""
_PREFIX: Final = "kafka."
_BOOTSTRAP: Final = "bootstrap.servers"
_OF_READING: Final = (
    "check.crcs",
    "exclude.",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.",
    "max.partition.",
    "max.poll.",
    "session.",
)
"""How settings begin that are about reading rows, and not about reaching a cluster."""
_NO_ANSWER: Final = "java.util.concurrent.TimeoutException"
"""All that Java says when the client itself has not answered in time."""

ClientKey = tuple[tuple[str, str], ...]


@dataclass
class _Kept:
    """A client, how many are using it, and when it was last asked for, in seconds."""

    admin: Any
    used_at: float
    users: int = 0


class Count(Protocol):
    """Is told of each question, and whether there was an answer."""

    def __call__(self, *, answered: bool) -> None:
        """One more."""
        ...


@dataclass
class KafkaClient:
    """One client for one purpose; `config` is its own, `count` is told of each question.

    `is_alone` says that a question came to nothing that any broker could have answered.
    """

    admin: Any
    config: Mapping[str, str]
    jvm: Any
    count: Count
    is_alone: bool = False

    def answer(self, future: Any, *, of_any: bool = False) -> Any:
        """What the brokers say to a question; raises Java's exceptions.

        Args:
            future: Java's, of the answer.
            of_any: any broker of the cluster can answer it. Other questions only one broker can, which may be
                away while all others are well: the leader of a partition, the coordinator of a group.
        """
        limit = self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        try:
            told = future.get(TIMEOUT_MS + GRACE_MS, limit)
        except Py4JJavaError:
            self.count(answered=False)
            self.is_alone = of_any
            raise
        self.count(answered=True)
        return told


class KafkaClients:
    """All clients of a worker; for any thread.

    Args:
        jvm: Py4J's view of the JVM that has Kafka's client.
        now: the clock that idle clients and silent clusters are judged by, in seconds.
    """

    def __init__(self, jvm: Any, now: Callable[[], float] = time.monotonic) -> None:
        self._jvm = jvm
        self._now = now
        self._lock = threading.Lock()
        self._kept: dict[ClientKey, _Kept] = {}
        self._silent: dict[ClientKey, tuple[float, QueryError]] = {}
        self._requests: Counter[tuple[str, bool]] = Counter()
        self._sweeper: threading.Thread | None = None
        self._over = threading.Event()

    def requests(self) -> dict[tuple[str, bool], int]:
        """How often brokers were asked, by purpose and whether they answered."""
        with self._lock:
            return dict(self._requests)

    @contextmanager
    def asking(
        self, options: Mapping[str, Any], purpose: Question, *, anyway: bool = False
    ) -> Iterator[KafkaClient]:
        """The client for the cluster that a source's options name.

        Args:
            options: the source's, with its secrets.
            purpose: what is asked for, for the metric.
            anyway: ask a cluster, too, that did not answer a moment ago.

        Raises:
            QueryError: of whatever is asked: no broker answers in time (an outage), or lets nobody in.
        """
        config, key = client_settings(options), client_key(options)
        if not anyway:
            self._require_no_silence(key)
        client = None
        try:
            with self._client(key, config) as admin:
                client = KafkaClient(admin, config, self._jvm, partial(self.count, purpose))
                yield client
        except Py4JJavaError as error:
            raise self._refused(key, error, of_any=client is None or client.is_alone) from None
        except (Py4JError, TypeError, OSError) as error:  # of a class that is not there Py4J makes a package
            raise QueryError(f"Kafka's client does not answer: {error}") from None
        with self._lock:
            self._silent.pop(key, None)

    def count(self, purpose: Question, *, answered: bool) -> None:
        """One more question was asked."""
        with self._lock:
            self._requests[purpose, answered] += 1

    def close_idle(self) -> bool:
        """Let go of those that nobody has needed for long, and of what is over; whether anything is left."""
        before = self._now() - IDLE_S
        with self._lock:
            idle = [key for key, kept in self._kept.items() if not kept.users and kept.used_at < before]
            closed = [self._kept.pop(key) for key in idle]
            self._silent = {key: each for key, each in self._silent.items() if self._now() < each[0]}
            is_any_left = bool(self._kept or self._silent)
            self._sweeper = self._sweeper if is_any_left else None
        self._close(closed)
        return is_any_left

    def close(self) -> None:
        """Let go of all; what they are at ends with them."""
        self._over.set()
        with self._lock:
            closed = list(self._kept.values())
            self._kept.clear()
        self._close(closed)

    def java_map(self, items: Mapping[str, str]) -> Any:
        """A map of Java's."""
        made = self._jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    @contextmanager
    def _client(self, key: ClientKey, config: Mapping[str, str]) -> Iterator[Any]:
        kept = self._take(key) or self._make(key, config)
        try:
            yield kept.admin
        finally:
            with self._lock:
                kept.users -= 1
                kept.used_at = self._now()
            self._close_dropped(key, kept)

    def _drop(self, key: ClientKey) -> None:
        """The next question is another client's: one that failed may know only brokers that are gone.

        Kafka's client looks at what `bootstrap.servers` names, and reads files of keys, when it is made.
        """
        with self._lock:
            kept = self._kept.pop(key, None)
        if kept is not None:
            self._close_dropped(key, kept)

    def _close_dropped(self, key: ClientKey, kept: _Kept) -> None:
        """Whoever uses it last closes it."""
        with self._lock:
            is_over = self._kept.get(key) is not kept and not kept.users
        if is_over:
            with suppress(Py4JError, OSError):  # the JVM is going, and its clients with it
                self._close([kept])

    def _take(self, key: ClientKey) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                kept.users += 1
            return kept

    def _make(self, key: ClientKey, config: Mapping[str, str]) -> _Kept:
        """Without the lock: names of brokers are looked up, which may take its time."""
        create = self._jvm.org.apache.kafka.clients.admin.Admin.create
        made = _Kept(create(self.java_map(config)), self._now())
        with self._lock:
            kept = self._kept.setdefault(key, made)
            kept.users += 1
            closed = [] if kept is made else [made]
            closed += self._surplus()
            if self._over.is_set():
                closed.append(self._kept.pop(key))
            self._sweep_from_now_on()
        self._close(closed)
        return kept

    def _sweep_from_now_on(self) -> None:
        """Under the lock; the thread ends when there is nothing left to close."""
        if self._sweeper is None:
            self._sweeper = threading.Thread(target=in_scope(self._sweep), name="kafka-idle", daemon=True)
            self._sweeper.start()

    def _sweep(self) -> None:
        while not self._over.wait(SWEEP_S):
            with suppress(Py4JError, OSError):  # the JVM is going, and its clients with it
                if not self.close_idle():
                    return

    def _surplus(self) -> list[_Kept]:
        """Those that were not needed for longest, of more than are kept."""
        free = sorted((kept.used_at, key) for key, kept in self._kept.items() if not kept.users)
        return [self._kept.pop(key) for _, key in free[: max(len(self._kept) - MOST_CLIENTS, 0)]]

    def _close(self, clients: list[_Kept]) -> None:
        for each in clients:
            each.admin.close(self._jvm.java.time.Duration.ofMillis(0))

    def _require_no_silence(self, key: ClientKey) -> None:
        with self._lock:
            until, error = self._silent.get(key, (0.0, None))
        if error is not None and self._now() < until:
            raise replace(error)

    def _refused(self, key: ClientKey, error: Py4JJavaError, *, of_any: bool) -> QueryError:
        """What went wrong; a cluster of which no broker has answered is silent from now on."""
        self._drop(key)
        told = refused(dict(key).get(_BOOTSTRAP, ""), describe(error), of_any=of_any)
        if told.outage and of_any:
            with self._lock:
                self._silent[key] = (self._now() + SILENT_S, replace(told))
                self._sweep_from_now_on()
        return told


def refused(brokers: str, cause: str, *, of_any: bool) -> QueryError:
    """What a question to `brokers` came to, by the error of Kafka's client; with what to do about it.

    Args:
        brokers: the cluster's, as the source names them.
        cause: what the client says.
        of_any: any of the brokers could have answered.
    """
    line, rest = cause.partition("\n")[::2]
    if line == _NO_ANSWER:
        line = f"TimeoutException: Timed out waiting for a node assignment for {TIMEOUT_MS / 1000:g} s"
    judged = judge(line, at_start=True)
    if judged.outage:
        told = scrub(brokers)  # before it is cut: half of a secret would not be known
        shown = told if len(told) <= MOST_SHOWN else f"{told[: MOST_SHOWN - 1]}…"
        judged = (
            judge(f"no broker of {shown} answers ({line})", at_start=True) if of_any else _one(shown, line)
        )
    return QueryError(f"{judged.cause}\n{rest}", permanent=judged.permanent, outage=judged.outage)


def _one(brokers: str, line: str) -> Judged:
    """A question for one of the brokers, while others answer."""
    cause = f"the broker of {brokers} that is to answer does not ({line})"
    return Judged(f"{cause}: the task goes on by itself when it does", permanent=False, outage=True)


def client_key(options: Mapping[str, Any]) -> ClientKey:
    """What tells clients apart: sources that reach a cluster in the same way share one."""
    settings = client_settings(options).items()
    return tuple(sorted((name, value) for name, value in settings if not name.startswith(_OF_READING)))


def client_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """What of a source's options is for Kafka's client, under the names that it knows."""
    given = {
        name[len(_PREFIX) :]: str(value)
        for name, value in options.items()
        if name.lower().startswith(_PREFIX)
    }
    limits = {"request.timeout.ms": str(TIMEOUT_MS), "default.api.timeout.ms": str(TIMEOUT_MS)}
    return {**given, **limits, "client.id": "sparkherd-lag"}
