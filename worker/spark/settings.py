"""What a worker's Spark needs to know, without PySpark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from worker.spark.folder_names import folder_name

if TYPE_CHECKING:
    from worker.query_engine import OfTask

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)", re.DOTALL)
"""What Hadoop takes for a URL with a path from the root; it needs no `//` (`file:/data`)."""
_AUTHORITY = re.compile(r"\A//[^/]*")


class SparkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run Spark; `conf` is set on top of the worker's own choices (`DEFAULTS` of each backend).

    With a `remote`, which may carry a token and so is never shown, `master` has no meaning. A JVM of the
    worker's own that is silent for `jvm_timeout_s` seconds counts as hung; a
    start of a query that takes longer than `start_timeout_s` is given up, unless Spark was asked to run it.
    Such a JVM keeps the file descriptors `inherited` open as long as it lives, and with them their locks.
    With `warm_up_s`, a small query is run first when Spark has come up, for so many seconds at most.
    `is_of_one_task` is true of a Spark that was brought up for one task, with the memory that it may have.
    """

    app_name: str
    checkpoint_root: str
    master: str = "local[2]"
    remote: str | None = None
    conf: dict[str, str] = {}
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    jvm_timeout_s: float = 60.0
    start_timeout_s: float = 180.0
    warm_up_s: float = 0.0
    inherited: tuple[int, ...] = ()
    allow_entrypoint: tuple[str, ...] = ()
    allow_secret_env: tuple[str, ...] = ()
    secrets_dir: str | None = None
    allow_jdbc: tuple[str, ...] = ()
    is_of_one_task: bool = False

    @property
    def place(self) -> str:
        """Where Spark is, as a person may see it."""
        return self.master if self.remote is None else remote_place(self.remote)

    def checkpoint(self, group: str, task: str, resets: int = 0) -> str:
        """Where a task's checkpoint is; on every worker the same, so that the next owner goes on from it.

        Each reset of the task has one of its own; no task's name has a `~`.
        """
        return f"{self.root}/{group}/{folder_name(task, f'~{resets}' if resets else '')}"

    def checkpoint_of(self, spec: OfTask) -> str:
        """Where the progress of a query is kept, under the names that it is known by."""
        home = spec.known_as
        return self.checkpoint(home.group, home.task, spec.resets)

    @property
    def root(self) -> str:
        """Where all checkpoints are.

        Without a scheme (`s3a:/`) it is a folder, relative to the one the worker was started in.
        """
        root = self.checkpoint_root
        return root.rstrip("/") if _URL.fullmatch(root) else str(Path(root).absolute())


def local_folder(checkpoint_root: str) -> Path | None:
    """The folder that a checkpoint root names, by a path or a `file:` URL; None if it is in another store."""
    url = _URL.fullmatch(checkpoint_root)
    if url is None:
        return Path(checkpoint_root)
    return Path(_AUTHORITY.sub("", url["rest"]) or "/") if url["scheme"].lower() == "file" else None


def remote_place(remote: str) -> str:
    """The host and port of a Spark Connect URL, which has `;key=value` parameters after them."""
    return remote.partition("/;")[0].rstrip("/")
