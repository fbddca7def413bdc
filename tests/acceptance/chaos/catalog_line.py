"""One worker's line to the database of an Iceberg catalog, where its commits can be held."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.acceptance.chaos.lake import MADE, REFUSED, Work
from tests.acceptance.chaos.plan import Moment
from tests.integration.spark.connectors.held_server import HeldServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

COMMIT = b"UPDATE iceberg_tables"
_METADATA = re.compile(rb"/[^\x00]*?\.metadata\.json")
_REPLACED = re.compile(rb"UPDATE ([01])\x00")
_MARK = "sparkherd-fence-"


class Commit(NamedTuple):
    """What a commit to the catalog brings into which table: a batch or a claim."""

    table: str
    work: Work


class LineHold:
    """The hold of one commit: of the statement, or of the answer to it."""

    def __init__(self, commit: Commit, moment: Moment) -> None:
        self.commit = commit
        self.moment = moment
        self.outcome: str | None = None
        self.is_lost = False
        self._told = threading.Event()
        self._go_on = threading.Event()

    @property
    def reached(self) -> bool:
        """It stands before the database, or before who has asked."""
        return self._told.is_set()

    @property
    def is_over(self) -> bool:
        """Whether nothing is held by it any more."""
        return self._go_on.is_set()

    def wait(self) -> bool:
        """Whether what is held goes on; returns when that is known."""
        self._told.set()
        self._go_on.wait()
        return not self.is_lost

    def release(self, *, lost: bool = False) -> None:
        """What is lost never comes to the other side."""
        self.is_lost = lost
        self._go_on.set()


class CatalogLine(HeldServer):
    """The worker's connections go through here; a commit that is held keeps its own connection only."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._holds: list[LineHold] = []
        self._asking: dict[socket.socket, LineHold] = {}

    @property
    def jdbc(self) -> str:
        """The driver says each statement in full each time."""
        return f"{super().jdbc}&prepareThreshold=0"

    def hold_commit(self, commit: Commit, moment: Moment) -> LineHold:
        """Hold the next such commit."""
        hold = LineHold(commit, moment)
        self._holds = [each for each in self._holds if not each.is_over] + [hold]
        return hold

    def passes(self, said: bytes, client: socket.socket) -> bool:
        """A commit is known by the metadata that it puts in the place of others."""
        waiting = [each for each in self._holds if not (each.is_over or each.reached)]
        if COMMIT not in said or not waiting or (commit := commit_of(said)) is None:
            return True
        for hold in waiting:
            if hold.commit == commit:
                self._asking[client] = hold
                return hold.moment is Moment.COMMITTING or hold.wait()
        return True

    def answers(self, said: bytes, client: socket.socket) -> bool:
        """The database has replaced one row, or none."""
        found = _REPLACED.search(said)
        if found is None or (hold := self._asking.pop(client, None)) is None:
            return True
        hold.outcome = MADE if found[1] == b"1" else REFUSED
        return hold.moment is Moment.WRITTEN or hold.wait()


def commit_of(said: bytes) -> Commit | None:
    """None if it brings no snapshot."""
    found = _METADATA.search(said)
    if found is None:
        return None
    path = Path(found[0].decode())
    new = json.loads(path.read_text())
    log = new.get("metadata-log")
    old = json.loads(Path(log[-1]["metadata-file"].removeprefix("file:")).read_text()) if log else {}
    written = _snapshots(new).keys() - _snapshots(old).keys()
    return Commit(path.parts[-3], _work(_snapshots(new)[written.pop()])) if written else None


def _snapshots(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {each["snapshot-id"]: each for each in metadata.get("snapshots", ())}


def _work(snapshot: Mapping[str, Any]) -> Work:
    """A claim's mark says that it adds no rows."""
    marks = [text for key, text in snapshot.get("summary", {}).items() if key.startswith(_MARK)]
    return Work.CLAIM if any(json.loads(mark)["added"] == 0 for mark in marks) else Work.BATCH
