"""A worker whose SQL sink lets everybody write: the control run, which must show what the fence prevents.

A script, to be run in place of `sparkherd`; no setting of the product does this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from cli.main import main
from worker.sinks.fence import FenceRow, Verdict
from worker.sinks.fence_table import FenceTable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from worker.sinks.marks import Mark, Owner


def _claim_of_anybody(fence: FenceTable, connection: Connection, owner: Owner) -> FenceRow:
    """The row as it is; nobody's token is too old."""
    fence.enter(connection, owner)
    return fence.read(connection, owner) or FenceRow(owner.token)


def _admit_anything(
    _fence: FenceTable, _connection: Connection, owner: Owner, _mark: Mark
) -> tuple[Verdict, FenceRow]:
    return Verdict.WRITE, FenceRow(owner.token)


def _spare_older_sessions(_engine: Engine, _owner: Owner) -> None:
    """A frozen one keeps its transaction."""


if __name__ == "__main__":
    with (
        patch.multiple(FenceTable, claim=_claim_of_anybody, admit=_admit_anything),
        patch("worker.sinks.sql.end_older_sessions", _spare_older_sessions),
    ):
        main()
