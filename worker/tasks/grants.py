"""What the manager grants: a token, and what is wanted of the task at present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from definition.document import Definition, DefinitionError, parse_definition
from protocol.states import Target

if TYPE_CHECKING:
    from protocol.messages.ownership import GrantedTask
    from protocol.messages.tasks import Reached, TaskHome, TaskReset


@dataclass(frozen=True, slots=True)
class Grant:
    """A granted task as the worker works with it.

    `document` is the definition as it came, and its identity: numbers that count its changes begin anew when
    a task is deleted and created again. `definition` is None if this sparkherd cannot read it; `fault` then
    says why. It is as of `revision`, the group's `tasks_revision`; None if the manager does not tell.
    """

    task: str
    token: int
    target: Target
    document: bytes
    definition: Definition | None
    restart_count: int
    reset: TaskReset | None = None
    reached: Reached | None = None
    home: TaskHome | None = None
    fault: str = ""
    revision: int | None = None

    @property
    def is_fenced(self) -> bool:
        """Whether it does no harm to run it beside another owner; what cannot be read is not run."""
        return self.definition is None or self.definition.is_fenced

    def is_older(self, other: Grant) -> bool:
        """Whether `other` tells of a later revision of the same group: answers may come out of order."""
        return self.revision is not None and other.revision is not None and self.revision < other.revision


def read_grant(granted: GrantedTask, known: Grant | None = None, revision: int | None = None) -> Grant:
    """The grant in a claim's answer; a definition is read once, unless nothing came of it in `known`."""
    document = bytes(granted.definition)
    definition: Definition | None = None
    target = Target.RUNNING
    fault = ""
    try:
        target = Target(granted.target)
        if known is not None and known.document == document:
            definition = known.definition
        definition = definition or parse_definition(document)
    except DefinitionError as error:
        fault = f"the definition cannot be used: {error}"
    except ValueError:
        fault = f"this worker knows no target {granted.target!r}"
    return Grant(
        task=granted.task,
        token=granted.token,
        target=target,
        document=document,
        definition=definition,
        restart_count=granted.restart_count,
        reset=granted.reset,
        reached=granted.reached,
        home=granted.home,
        fault=fault,
        revision=revision,
    )
