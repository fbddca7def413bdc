"""Checks as errands: what the engine says of a definition that need not be a task's (protocol §5, Checks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.document import DefinitionError, parse_definition
from protocol.messages.checks import (
    CheckResult,
    CheckTrouble,
    FetchCheckRequest,
    FetchCheckResponse,
    ReportCheckRequest,
)
from protocol.messages.errands import MOST_SAID
from worker.errands.runner import Messages
from worker.query_engine import CheckSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.query_engine import QueryEngine


class CheckJob:
    """Does the checks of a group's definitions, which `engine` looks at."""

    messages = Messages(FetchCheckRequest, FetchCheckResponse, ReportCheckRequest, CheckTrouble)

    def __init__(self, engine: QueryEngine, group: str) -> None:
        self._engine = engine
        self._group = group

    async def do(self, fetched: FetchCheckResponse, at: Callable[[str], object]) -> CheckResult:
        """Look at the definition; raises QueryError if the engine cannot."""
        try:
            definition = parse_definition(fetched.definition)
        except DefinitionError as error:  # of a later version
            return CheckResult(problems=error.problems[:MOST_SAID])
        return await self._engine.check(CheckSpec(self._group, definition, fetched.rows, fetched.begin), at)

    def unheard(self, _: FetchCheckResponse) -> str:
        """Nothing is left behind by a check."""
        return ""
