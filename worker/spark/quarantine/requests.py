"""What becomes of requests about the rows that a task has put aside; called in a thread."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

from definition.quarantine import Quarantine
from definition.sinks.sql import SQL_SINK
from protocol.messages.base import MAX_INT
from protocol.messages.quarantine import QuarantineAnswer, QuarantinedRow
from worker.query_engine import NoQuarantineError
from worker.secrets import Secrets
from worker.sinks.quarantine.plan import PuttingAside, putting_aside
from worker.sinks.quarantine.store import Choice
from worker.spark.identity import owner_of
from worker.spark.quarantine.places import opened
from worker.spark.quarantine.replays import replay
from worker.spark.reading.jdbc import require_harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    from definition.document import Definition
    from protocol.messages.quarantine import QuarantineRequest
    from worker.query_engine import QuerySpec
    from worker.sinks.quarantine.store import StoredRow
    from worker.spark.backend import SparkBackend
    from worker.spark.quarantine.places import Place
    from worker.spark.settings import SparkSettings


_STRANGE: Final = (
    "rows that are passed over because they have no resets, batch_id, nth, reason or form as rows have them,"
    " and so were written by hand: {}"
)


def answer(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    request: QuarantineRequest,
    at: Callable[[str], None],
) -> QuarantineAnswer:
    """List, show, play again or discard, as `worker.query_engine.QueryEngine.quarantine` says.

    Args:
        backend: this worker's Spark.
        spec: the task, its secrets not looked up yet.
        settings: the worker's.
        request: what to do.
        at: is called with each thing that this may have to wait for; raises QueryError once it is given up.

    Raises:
        NoQuarantineError: the definition puts no rows aside.
        QueryError, SinkError: it cannot be done.
    """
    definition = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition).definition
    require_harmless(definition, spec.definition, settings.allow_jdbc)
    aside = putting_aside(spec.definition, definition) or _formerly(definition)
    if aside is None:
        raise NoQuarantineError(f"the definition of task {spec.task} puts no rows aside")
    with closing(opened(backend, definition, owner_of(spec), aside, at)) as place:
        return _done(place, request, at)


def _formerly(definition: Definition) -> PuttingAside | None:
    """Where there may be rows from before a definition put none aside any more."""
    sink = definition.sink
    if definition.entrypoint is not None or sink is None or sink.fenced is None:
        return None
    if definition.quarantine is None and sink.format != SQL_SINK:
        return None
    return PuttingAside(definition.quarantine or Quarantine(), takes_refused=False, rules="")


def _done(place: Place, request: QuarantineRequest, at: Callable[[str], None]) -> QuarantineAnswer:
    choice = Choice(request.ids, request.reason, request.name)
    at(f"the quarantine in {place.store.place}")
    if request.action in {"list", "show"}:
        found = place.store.find(choice, request.limit)
        notes = (_STRANGE.format(found.strange),) if found.strange else ()
        return QuarantineAnswer(rows=tuple(map(told, found.rows)), total=found.total, notes=notes)
    if request.action == "discard":
        return QuarantineAnswer(discarded=place.discard(choice))
    return replay(place, choice, at)


def told(row: StoredRow) -> QuarantinedRow:
    """The row as a message has it."""
    raw = bytes(row.raw)
    try:
        shown: dict[str, Any] = {"raw": raw.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        shown = {"raw": base64.b64encode(raw).decode(), "encoding": "base64"}
    return QuarantinedRow(
        id=row.id,
        batch_id=row.batch_id,
        token=row.token,
        at_ms=row.at_ms,
        reason=cast("Any", row.reason),
        name=row.name,
        error=row.error,
        form=cast("Any", row.form),
        origin={key: value for key, value in row.places.items() if _can_be_told(value)},
        **shown,
    )


def _can_be_told(value: object) -> bool:
    """Whether a message takes it as a part of where a row came from."""
    return isinstance(value, str) or (type(value) is int and abs(value) <= MAX_INT)
