"""What an owner says last of a task, when the task was changed while its word was on its way (§5, Report).

With STOPPED and COMPLETED an owner lets go of a task, with `quarantine` it has it given to nobody. What
somebody has wanted of the task since the owner was told of it says more: it is to run after all, or once
more, or under another definition. The owner may have begun with that already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core.tasks import ownership
from protocol.states import TaskState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.turn import Turn
    from protocol.messages.ownership import TaskReport

OWNERLESS: Final = frozenset({TaskState.STOPPED, TaskState.COMPLETED})
"""States in which a task belongs to nobody."""


def is_overtaken(group: Group, entry: TaskReport) -> bool:
    """Whether the task was changed since its owner was told of it; workers of former versions do not say."""
    told = entry.tasks_revision
    return told is not None and told < group.tasks.definitions[entry.task].revision


def refuse(turn: Turn, task: str) -> None:
    """Its owner wants to let go of a task that something else is wanted of by now.

    The owner may have begun with that under the same token, so the task is taken away from it, and its token
    is stale: it ends whatever it runs of it, and claims it anew if it is assigned to it.
    """
    ownership.take_away(turn, task, turn.now)
