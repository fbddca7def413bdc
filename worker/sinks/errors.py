"""Why a sink refuses; the text of each is the task's cause, made for the user to read."""

from __future__ import annotations


class SinkError(Exception):
    """A sink cannot do what it is asked to; nothing of the batch was written."""


class FencedError(SinkError):
    """A newer owner of the task has raised the fence: this one must not write any more."""


class OutOfOrderError(SinkError):
    """A batch does not follow the last one written; going on would lose or repeat rows."""


class SchemaError(SinkError):
    """The query's columns do not fit the sink."""


class BatchRefusedError(Exception):
    """The batch was not done, and Spark must not take it for done; the text is short on purpose.

    No fault of the sink's: the query is being stopped, or the worker may not write any more.
    """
