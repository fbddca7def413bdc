"""A task's checkpoint folder, read by the means of Spark itself; so it may be anywhere."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from hashlib import sha256
from typing import TYPE_CHECKING

from worker.query_engine import QueryError
from worker.spark.checkpoint_rules import (
    REMEDY,
    Checkpoint,
    check_entry,
    damaged,
    fits,
    knows_of,
    read_query_id,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.tasks import Reached
    from worker.sinks.fence import FenceRow, Owner

OWNER_FILE = "sparkherd.json"
"""Says whose checkpoint it is; Spark leaves it alone."""


class CheckpointFolder(ABC):
    """One task's checkpoint; how it is reached depends on the backend.

    The three ways in raise `QueryError` if the folder cannot be read or written.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def read(self, name: str) -> str | None:
        """The text of a file, None if there is none; or the one that `create` has put there."""

    @abstractmethod
    def last(self, log: str) -> int | None:
        """The number of a log's last entry."""

    @abstractmethod
    def create(self, name: str, text: str) -> None:
        """Put a text into the folder, as a file or as a folder with one in it."""

    def sweep(self) -> None:  # noqa: B027 - nothing, where files cannot be taken away
        """Take away what queries have left here that were cut while they wrote a file."""

    def require(self, reached: Reached) -> None:
        """See that this is the task's checkpoint and not another, before anything is written anywhere.

        Raises:
            QueryError: it does not know of the batch that the task has reached.
        """
        knows_of(self.place, self.last("offsets"), reached)

    def verify(self, owner: Owner, rows: Iterable[FenceRow]) -> Checkpoint:
        """See that the query of `owner` may go on from here, and that it is where its sinks' fences say.

        Once it may, nobody else has anything to finish here: what was left half done is taken away.

        Returns:
            How far the query has come.

        Raises:
            QueryError: the checkpoint is damaged or another task's.
            OutOfOrderError: it is not the one that the rows in the sink are from, or an older copy of it.
        """
        self._adopt(owner)
        checkpoint = self.inspect()
        whole(checkpoint)
        for row in rows:
            fits(checkpoint, owner, row)
        self.sweep()
        return checkpoint

    def inspect(self) -> Checkpoint:
        """How far the query has come; raises `QueryError` if that cannot be read."""
        metadata = self.read("metadata")
        planned, committed = self.last("offsets"), self.last("commits")
        plan = None
        if planned is not None:
            plan = self.digest(planned)
        if committed is not None:
            self._entry(f"commits/{committed}", 1)
        query_id = None if metadata is None else read_query_id(self.place, metadata)
        return Checkpoint(self.place, query_id, planned, plan, committed)

    def digest(self, batch_id: int) -> str:
        """A digest of what Spark has planned for a batch; raises `QueryError` if that cannot be read."""
        return self._entry(f"offsets/{batch_id}", 2)

    def _adopt(self, owner: Owner) -> None:
        """Make the folder the owner's, unless it is another's."""
        mine = {"group": owner.group, "task": owner.task, "resets": owner.resets}
        text = self.read(OWNER_FILE)
        if text is None:
            self.create(OWNER_FILE, json.dumps(mine))
            return
        try:
            theirs = json.loads(text)
        except ValueError:
            raise damaged(self.place, f"its file {OWNER_FILE} cannot be read") from None
        if theirs != mine:
            raise QueryError(f"the checkpoint {self.place} is of another task, {text}; {REMEDY}")

    def _entry(self, name: str, lines: int) -> str:
        """A digest of a log's entry, which must be whole."""
        text = self.read(name)
        if text is None:
            raise damaged(self.place, f"its entry {name} is missing")
        check_entry(self.place, name, text, lines)
        return sha256(text.encode()).hexdigest()[:32]
