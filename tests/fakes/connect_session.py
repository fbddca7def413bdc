"""A session at a Spark Connect server, as far as its settings and its queries go."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyspark.errors.exceptions.connect import SparkException

if TYPE_CHECKING:
    from collections.abc import Callable


_REDACTED = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
"""`spark.redaction.regex`: since Spark 4.3 a server does not tell settings whose values match it."""


class FakeQuery:
    """A query that runs there."""

    def __init__(self, name: str, session: FakeSession) -> None:
        self.name = name
        self.runId = f"run of {name}"
        self.isActive = True
        self.lastProgress: Any = None
        self._session = session

    def stop(self) -> None:
        """Noted."""
        self.isActive = False
        self._session.stopped.append(self.name)


class FakeSession:
    """What both sides see.

    `asked` is called before all settings are told, `unreadable` has errors of those that cannot be.
    `is_released` says that the session was ended with its queries, `is_closed` that its connection was.
    """

    def __init__(self, *queries: str) -> None:
        self.conf = self.client = self
        self.settings: dict[str, str] = {}
        self.unreadable: dict[str, Exception] = {}
        self.asked: Callable[[], None] = lambda: None
        self.queries = [FakeQuery(name, self) for name in queries]
        self.stopped: list[str] = []
        self.is_released = self.is_closed = self.is_gone = False

    @property
    def streams(self) -> SimpleNamespace:
        """Those that run."""
        self._require()
        return SimpleNamespace(active=[query for query in self.queries if query.isActive])

    def get(self, key: str, default: str) -> str:
        """One setting."""
        self._require()
        if key in self.unreadable:
            raise self.unreadable[key]
        value = self.settings.get(key, default)
        return default if _REDACTED.search(value) else value

    def set(self, key: str, value: str) -> None:
        """One setting."""
        self._require()
        self.settings[key] = value

    def config(self, operation: Any) -> SimpleNamespace:
        """All settings that begin with a prefix, without it."""
        self._require()
        self.asked()
        prefix = operation.get_all.prefix
        for key, error in self.unreadable.items():
            if key.startswith(prefix):
                raise error
        told = {key: value for key, value in self.settings.items() if not _REDACTED.search(value)}
        pairs = [(key.removeprefix(prefix), value) for key, value in told.items()]
        return SimpleNamespace(pairs=pairs)

    def release_session(self) -> None:
        """With all that runs in it."""
        self.is_released = True
        for query in self.queries:
            query.isActive = False

    def close(self) -> None:
        """The connection."""
        self.is_closed = True

    def _require(self) -> None:
        if self.is_gone:
            raise SparkException("[INVALID_HANDLE.SESSION_CLOSED] It is closed.")
