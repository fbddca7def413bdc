"""Definitions that are those of a task, but for a few fields; and what is wrong with them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from definition.document import Definition, DefinitionError, parse_definition


class Task(NamedTuple):
    """A task; without fields of a test's own, its definition is a good one."""

    fields: dict[str, Any]

    def read(self, **others: Any) -> Definition:
        return parse_definition(json.dumps({**self.fields, **others}).encode())

    def problems(self, **others: Any) -> list[tuple[str, str]]:
        """Places and messages."""
        with pytest.raises(DefinitionError) as refusal:
            self.read(**others)
        return [(problem.path, problem.message) for problem in refusal.value.problems]
