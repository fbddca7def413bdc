"""Tasks of a file, as a run without a manager has them."""

from __future__ import annotations

from typing import Any

from definition.document import parse_definition
from protocol.messages.base import encode_opaque
from protocol.states import Target
from worker.standalone.local_manager import (
    LocalTask,
)


def local(name: str, target: Target = Target.RUNNING, **changes: Any) -> LocalTask:
    """A task; `changes` are keys of its definition."""
    document = {"source": {"format": "rate"}, "sink": {"format": "noop"}, **changes}
    return LocalTask(name, parse_definition(encode_opaque(document)), target)
