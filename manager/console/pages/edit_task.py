"""Changing a task's definition: as it is now, unless somebody else changes it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manager.console.definitions import shown, written
from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_path, task_api, task_path
from manager.core.commands import GetTask
from protocol.etags import etag_of
from protocol.messages.tasks import TaskResponse
from protocol.states import Target

if TYPE_CHECKING:
    from manager.console.page_data import PageData

RESTARTS = (
    "Its query is stopped after the batch in flight, and started with the new definition from its checkpoint."
    " A new weight, worker, label or restart policy alone restarts nothing. To another source the"
    " checkpoint does not fit: then the task has to be reset."
)
LATER = "It is {target}: the new definition counts as soon as it is resumed."


@dataclass(frozen=True, slots=True)
class EditTaskPage:
    """What the page shows; `etag` is the task's as it was read, `effect` says what a change does."""

    group: str
    group_path: str
    task: str
    path: str
    api: str
    version: int
    etag: str
    document: str
    has_secrets: bool
    effect: str


async def edit_task(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}/tasks/{task}/edit`."""
    task = await page_data.ask(request.group, GetTask(task=request.task), TaskResponse)
    return Page("edit_task.html", f"Edit {task.task}", "overview", edit_task_page(request.group, task))


def edit_task_page(group: str, task: TaskResponse) -> EditTaskPage:
    """What the page shows of the task: what is hidden elsewhere too, or it would be saved as it is hidden."""
    document = written(task.definition)
    return EditTaskPage(
        group=group,
        group_path=group_path(group),
        task=task.task,
        path=task_path(group, task.task),
        api=task_api(group, task.task),
        version=task.definition_version,
        etag=etag_of(task.definition, task.target),
        document=document,
        has_secrets=shown(task.definition) != document,
        effect=RESTARTS if task.target == Target.RUNNING.value else LATER.format(target=task.target),
    )
