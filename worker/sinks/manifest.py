"""What the fenced file sink says of each batch, and how readers find the batches."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark

if TYPE_CHECKING:
    from pathlib import Path

    from worker.sinks.fence import Owner

MANIFEST = "_manifest"
"""Spark, pandas and pyarrow pass over names that begin so, and patterns like `*.json` do not match it."""
BATCH_COLUMN = "sparkherd_batch"
"""As Spark's partition discovery has it, this is also a column of whoever reads the whole folder."""
_BATCH = re.compile(rf"{BATCH_COLUMN}=(\d+)_(\d+)\Z")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Who wrote a batch, which one it is, how many rows it has, and how many the task has written with it."""

    group: str
    task: str
    token: int
    resets: int
    checkpoint: str
    batch_id: int
    plan: str | None
    rows: int
    total: int

    @classmethod
    def of(cls, owner: Owner, mark: Mark, rows: int, total: int) -> Manifest:
        """The manifest of a batch that `owner` writes."""
        identity = (owner.group, owner.task, owner.token, owner.resets)
        return cls(*identity, mark.checkpoint, mark.batch_id, mark.plan, rows, total)

    @property
    def mark(self) -> Mark:
        """Which batch it is."""
        return Mark(self.checkpoint, self.batch_id, self.plan)

    def text(self, files: list[str]) -> str:
        """As JSON, with the names of the files."""
        return json.dumps({**asdict(self), "files": files}, indent=1)


def batch_name(resets: int, batch_id: int) -> str:
    """The name of a batch's folder; names sort as the batches since a reset follow each other."""
    return f"{BATCH_COLUMN}={resets}_{batch_id:012d}"


def published(folder: Path) -> list[tuple[tuple[int, int], Path]]:
    """The batches in `folder` in order, each with the number of resets before it and its batch id."""
    found = ((_BATCH.match(path.name), path) for path in folder.iterdir())
    return sorted(((int(match[1]), int(match[2])), path) for match, path in found if match)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a batch's folder.

    Raises:
        SinkError: it is gone or damaged.
    """
    try:
        told = json.loads((folder / MANIFEST).read_text())
        del told["files"]
        return Manifest(**told)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SinkError(f"the manifest of {folder} cannot be read: {error}") from None
