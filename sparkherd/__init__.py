"""What your own code may import of sparkherd; docs/python-api.md says what each name is for.

Every other package that comes with it is its inside and may change with any version. A name's module is
loaded when the name is first asked for: an assignor needs neither Spark nor a database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sparkherd.packages import hidden_package

if TYPE_CHECKING:
    from assignors.base import Assignment, Assignor, Kind, Member, Task, holders, in_order
    from assignors.dealing import Lot, deal
    from assignors.eligibility import Eligibility
    from definition.reading import Constraint, Section
    from definition.sinks.base import SinkFormat, Supports
    from protocol.messages.tasks import Problem
    from worker.query_engine import QueryError
    from worker.sink_contract.contract import SinkContract
    from worker.sinks.base import Batch, Condition, Field, Finding, Sink, SinkTask, Written
    from worker.sinks.entrypoint_fence import Fence
    from worker.sinks.errors import BatchRefusedError, FencedError, OutOfOrderError, SchemaError, SinkError
    from worker.sinks.fence import FenceRow, Mark, Owner, admits, raised
    from worker.spark.context import TaskContext

__all__ = [
    "Assignment",
    "Assignor",
    "Batch",
    "BatchRefusedError",
    "Condition",
    "Constraint",
    "Eligibility",
    "Fence",
    "FenceRow",
    "FencedError",
    "Field",
    "Finding",
    "Kind",
    "Lot",
    "Mark",
    "Member",
    "OutOfOrderError",
    "Owner",
    "Problem",
    "QueryError",
    "SchemaError",
    "Section",
    "Sink",
    "SinkContract",
    "SinkError",
    "SinkFormat",
    "SinkTask",
    "Supports",
    "Task",
    "TaskContext",
    "Written",
    "admits",
    "deal",
    "holders",
    "in_order",
    "raised",
]

_MODULES: Final = {
    "assignors.base": ("Assignment", "Assignor", "Kind", "Member", "Task", "holders", "in_order"),
    "assignors.dealing": ("Lot", "deal"),
    "assignors.eligibility": ("Eligibility",),
    "definition.reading": ("Constraint", "Section"),
    "definition.sinks.base": ("SinkFormat", "Supports"),
    "protocol.messages.tasks": ("Problem",),
    "worker.query_engine": ("QueryError",),
    "worker.sink_contract.contract": ("SinkContract",),
    "worker.sinks.base": ("Batch", "Condition", "Field", "Finding", "Sink", "SinkTask", "Written"),
    "worker.sinks.errors": (
        "BatchRefusedError",
        "FencedError",
        "OutOfOrderError",
        "SchemaError",
        "SinkError",
    ),
    "worker.sinks.entrypoint_fence": ("Fence",),
    "worker.sinks.fence": ("FenceRow", "Mark", "Owner", "admits", "raised"),
    "worker.spark.context": ("TaskContext",),
}


if not TYPE_CHECKING:  # so that type checkers find fault with a name that is not there

    def _loaded(module: str) -> Any:
        try:
            return import_module(module)
        except ImportError as error:
            if problem := hidden_package():
                raise ImportError(problem) from error
            raise

    def __getattr__(name: str) -> Any:
        """Load a public name with its module (PEP 562)."""
        for module, names in _MODULES.items():
            if name in names:
                return getattr(_loaded(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return __all__
