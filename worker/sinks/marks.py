"""Who writes which batch: what sinks go by, and keep."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes: a task, and the fencing token its query runs under.

    `resets` is the number of the last reset (docs/tasks.md), each of which begins a new checkpoint; it only
    grows, and is 0 before the first.
    """

    group: str
    task: str
    token: int
    resets: int = 0

    @property
    def digest(self) -> str:
        """Stands for the group and the task where their names do not fit."""
        return sha256(f"{self.group}/{self.task}".encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"task {self.task} of group {self.group}"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which batch it is: its number, within which checkpoint, and what Spark had planned for it.

    `checkpoint` is Spark's query id, the same after every restart; `plan` a digest of the batch's entry in
    the checkpoint's offset log, None where that log cannot be read.
    """

    checkpoint: str
    batch_id: int
    plan: str | None = None
