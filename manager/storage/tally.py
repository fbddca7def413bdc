"""What the transactions of a process that store something have come to: number, time, failures."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_ERROR: Final = 300
"""Characters of what the database said that are kept."""


class TransactionTally:
    """Counts them since the process began. Reads may be answered by a database that can store nothing.

    What a rule of ours refuses, as an older epoch, is no failure of the database.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.transactions = 0
        self.failed = 0
        self.seconds = 0.0
        self.last_error: str | None = None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Around one transaction."""
        began = self._now()
        try:
            yield
        except StorageError as error:
            if type(error) is StorageError:
                self.failed += 1
                self.last_error = str(error)[:LONGEST_ERROR]
            raise
        finally:
            self.transactions += 1
            self.seconds += self._now() - began
