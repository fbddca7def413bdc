"""How far a task's sink has come, and whether its checkpoint is there, asked before anybody is fenced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from worker.executor import QueryError
from worker.secrets import Secrets
from worker.sinks.factory import newest_fence
from worker.sinks.marks import Owner
from worker.spark.settings import SparkSettings, local_folder

if TYPE_CHECKING:
    from worker.settings import WorkerSettings
    from worker.sinks.fence import FenceRow
    from worker.standalone.local_manager import LocalTask


def fence_of(settings: WorkerSettings, task: LocalTask) -> FenceRow | None:
    """The fence in the task's sink, None if there is none; may block.

    Raises:
        QueryError: the task cannot go on from there.
        SinkError: the sink cannot be read.
    """
    if task.definition.sink is None:
        return None
    secrets = Secrets(settings.allow_secret_env, settings.secrets_dir)
    row = newest_fence(secrets.resolve_sink(task.definition.sink), Owner(settings.group, task.name, 0))
    if row is not None:
        require_checkpoint(settings.checkpoint_root, settings.group, task.name, row)
    return row


def require_checkpoint(root: str, group: str, task: str, row: FenceRow) -> None:
    """Raise `QueryError` if the sink has rows of the task, but there is no checkpoint to go on from.

    The query would refuse to start all the same, but only after its fence has stopped whoever runs the task
    with the right checkpoint. A root that is no folder of this machine is left to the query to look at.
    """
    folder = local_folder(root)
    if row.last is None or folder is None:
        return
    place = Path(SparkSettings(app_name="", checkpoint_root=str(folder)).checkpoint(group, task, row.resets))
    if not (place / "metadata").exists():
        raise QueryError(
            f"the sink has rows of task {task} up to batch {row.last.batch_id}, but {place} holds nothing:"
            " name the --checkpoint-root that it ran with, or another group and sink to begin anew"
        )
