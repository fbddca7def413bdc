"""What a check is: a function of the settings that says what it found, and what is to be done about it."""

from __future__ import annotations

import threading
from enum import StrEnum
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import msgspec

from manager.settings import DEFAULT_DATABASE, Database
from protocol.errors import StartupError
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Settings(WorkerSettings, frozen=True, kw_only=True):
    """What a worker and a manager on this machine would be told; without a group, no group is asked about."""

    group: Annotated[str, msgspec.Meta(description="The group that the token is for.")] = ""
    database: Database = DEFAULT_DATABASE


class Status(StrEnum):
    """How bad it is; only a problem is one for the exit code."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "not checked"


class Finding(msgspec.Struct, frozen=True):
    """What is there, and what to do if that is not as it should be."""

    status: Status
    found: str
    to_do: str = ""


class Check(NamedTuple):
    """One line of the table.

    `limit_s` is when it is given up, in seconds: a file system that hangs lets no call of it return. What
    `look` waits for by itself it waits for less long.
    """

    name: str
    look: Callable[[Settings], Finding]
    limit_s: float


Findings: TypeAlias = dict[str, Finding]


def ok(found: str) -> Finding:
    """All is well."""
    return Finding(Status.OK, found)


def warning(found: str, to_do: str) -> Finding:
    """It works, but perhaps not as it is meant."""
    return Finding(Status.WARNING, found, to_do)


def problem(found: str, to_do: str) -> Finding:
    """A manager or a worker will not work."""
    return Finding(Status.PROBLEM, found, to_do)


def skipped(why: str) -> Finding:
    """It is nothing that can, or has to, be looked at here."""
    return Finding(Status.SKIPPED, why)


def examine(checks: Iterable[Check], settings: Settings) -> Findings:
    """What the checks found, by name and in their order; they are made side by side."""
    start = monotonic()
    begun = [(check, _begin(check, settings)) for check in checks]
    return {check.name: _finding(check, answer, start) for check, answer in begun}


def _begin(check: Check, settings: Settings) -> SimpleQueue[Finding]:
    """In a thread that is left behind if it never returns."""
    answer: SimpleQueue[Finding] = SimpleQueue()
    thread = threading.Thread(target=lambda: answer.put(_look(check, settings)), daemon=True)
    thread.start()
    return answer


def _look(check: Check, settings: Settings) -> Finding:
    try:
        return check.look(settings)
    except StartupError as error:
        return problem(str(error), "correct the setting that it names")
    except Exception as error:  # noqa: BLE001 - the other checks have something to say, too
        return problem(f"the check failed: {type(error).__name__}: {error}", "report it as a bug")


def _finding(check: Check, answer: SimpleQueue[Finding], start: float) -> Finding:
    try:
        return answer.get(timeout=max(start + check.limit_s - monotonic(), 0.001))
    except Empty:
        return problem(
            f"no answer within {check.limit_s:g} s",
            "see whether a disk or a name server hangs, or try again when the machine is less busy",
        )
