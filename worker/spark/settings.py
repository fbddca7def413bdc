"""What a worker's Spark needs to know, without PySpark."""

from __future__ import annotations

from pathlib import Path

import msgspec


class SparkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run Spark; `conf` is set on top of the worker's own choices (`DEFAULTS` of each engine).

    With a `remote`, which may carry a token and so is never shown, `master` has no meaning.
    """

    app_name: str
    checkpoint_root: str
    master: str = "local[2]"
    remote: str | None = None
    conf: dict[str, str] = {}
    allow_entrypoint: tuple[str, ...] = ()
    allow_secret_env: tuple[str, ...] = ()
    secrets_dir: str | None = None

    @property
    def place(self) -> str:
        """Where Spark is, as a person may see it."""
        return self.master if self.remote is None else remote_place(self.remote)

    def checkpoint(self, group: str, task: str, resets: int = 0) -> str:
        """Where a task's checkpoint is; on every worker the same, so that the next owner goes on from it.

        Each reset of the task has one of its own; no task's name has a `~`.

        A root without a scheme (`s3a://`) is a folder, relative to the one the worker was started in.
        """
        root = self.checkpoint_root
        base = root.rstrip("/") if "://" in root else str(Path(root).absolute())
        return f"{base}/{group}/{task}~{resets}" if resets else f"{base}/{group}/{task}"


def remote_place(remote: str) -> str:
    """The host and port of a Spark Connect URL, which has `;key=value` parameters after them."""
    return remote.partition("/;")[0].rstrip("/")
