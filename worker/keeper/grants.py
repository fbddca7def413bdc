"""What the manager grants: a token, and what is wanted of the task at present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.definition import Definition, DefinitionError, parse_definition
from protocol.states import Target

if TYPE_CHECKING:
    from protocol.messages.ownership import GrantedTask
    from protocol.messages.tasks import TaskReset


@dataclass(frozen=True, slots=True)
class Grant:
    """A granted task as the keeper works with it.

    `definition` is None if this version cannot read it; `fault` then says why.
    """

    task: str
    token: int
    target: Target
    definition: Definition | None
    version: int
    restart_count: int
    reset: TaskReset | None = None
    fault: str = ""


def read_grant(granted: GrantedTask, known: Grant | None = None) -> Grant:
    """The grant in a claim's answer; the definition is read again only if it is not that of `known`."""
    definition: Definition | None = None
    target = Target.RUNNING
    fault = ""
    try:
        target = Target(granted.target)
        if known is not None and known.version == granted.definition_version:
            definition = known.definition
        else:
            definition = parse_definition(granted.definition)
    except DefinitionError as error:
        fault = f"the definition cannot be used: {error}"
    except ValueError:
        fault = f"this worker knows no target {granted.target!r}"
    return Grant(
        task=granted.task,
        token=granted.token,
        target=target,
        definition=definition,
        version=granted.definition_version,
        restart_count=granted.restart_count,
        reset=granted.reset,
        fault=fault,
    )
