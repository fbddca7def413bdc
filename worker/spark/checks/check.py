"""Looks at a definition with Spark: columns, what is wrong, some rows; called in a thread.

No query is started, no checkpoint touched, no fence raised, and no statement is sent to a database but the
one that reads: what the sources themselves do when they are read is the definition's (docs/security.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telemetry.foreign_errors import FAILURES, text_of
from worker.checks.findings import Findings
from worker.query_engine import QueryError
from worker.secrets import Secrets
from worker.sinks.factory import inspect_sink
from worker.sinks.quarantine.reach import reach
from worker.sinks.quarantine.rows import FIELDS
from worker.sinks.sifting import MASK
from worker.spark.causes import refusal
from worker.spark.checks.rendering import rendered
from worker.spark.checks.sampling import sample
from worker.spark.columns import fields
from worker.spark.expectations import expected
from worker.spark.kafka.source_offsets import read_sources
from worker.spark.kafka.sources import require_topics, with_patience
from worker.spark.reading.jdbc import for_check, require_harmless
from worker.spark.reading.payload import places_of_rows
from worker.spark.reading.reader import load, query
from worker.spark.reading.row_wise import require_row_wise
from worker.spark.reading.unreadable import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from definition.document import Definition
    from definition.sink import Sink
    from definition.source import Source
    from protocol.messages.checks import CheckResult
    from worker.lag.offset_log import Order
    from worker.query_engine import CheckSpec
    from worker.sinks.base import Finding
    from worker.spark.backend import SparkBackend
    from worker.spark.checks.check_session import CheckSession
    from worker.spark.errand_runs import Cancellation
    from worker.spark.settings import SparkSettings


def check(
    backend: SparkBackend, spec: CheckSpec, settings: SparkSettings, cancellation: Cancellation
) -> CheckResult:
    """What Spark says of the definition.

    Raises:
        QueryError: it was given up, or Spark is lost.
    """
    findings = Findings()
    try:
        definition = _as_it_is_read(backend, spec.definition, settings, findings)
        cancellation.at("Spark, for a session")
        session = backend.check_session(definition.spark_conf)
    except FAILURES as error:
        _tell(backend, findings, "spark_conf", error)
        return findings.result()
    try:
        cancellation.interrupts(session.interrupt)
        _Check(backend, session, spec, definition, at=cancellation.at, findings=findings).run()
    finally:
        session.close()
    return findings.result()


def _as_it_is_read(
    backend: SparkBackend, definition: Definition, settings: SparkSettings, findings: Findings
) -> Definition:
    """The definition with its secrets, and without what is not done in a check, which is noted."""
    secrets = Secrets(settings.allow_secret_env, settings.secrets_dir)
    resolved = secrets.resolve(definition).definition
    require_harmless(resolved, definition, settings.allow_jdbc)
    reading, left_out = for_check(resolved)
    for path in left_out:
        findings.note(path, "is left out in a check, which sends no statement but the query itself")
    return with_patience(reading) if backend.brokers is None else reading


class _Check:
    """One check, step by step; a step that fails is told, and those go on that need nothing of it."""

    def __init__(
        self,
        backend: SparkBackend,
        session: CheckSession,
        spec: CheckSpec,
        definition: Definition,
        *,
        at: Callable[[str], None],
        findings: Findings,
    ) -> None:
        self._backend = backend
        self._session = session
        self._spec = spec
        self._definition = definition
        self._at = at
        self._findings = findings
        self._is_unread = False
        self._order: Order = ()

    def run(self) -> None:
        """Columns first; rows only of what could be a query."""
        streamed = self._streamed()
        self._require_topics(streamed)
        if streamed is not None:
            self._findings.columns([each for each in streamed.dtypes if each[0] != MASK])
            self._require_streamable(streamed)
        self._look_at_sink(streamed)
        self._look_at_quarantine()
        if streamed is not None and self._spec.rows and not self._is_unread:
            self._show_rows()

    def _require_topics(self, streamed: DataFrame | None) -> None:
        """Of what is read; Spark itself would find out in the first batch only, and say less."""
        brokers = self._backend.brokers
        if brokers is None:
            return
        self._order = () if streamed is None else self._session.sources_of(streamed)
        for path, source in read_sources(self._definition, self._order):
            self._at(f"the brokers of {path}")
            try:
                require_topics(brokers, path, source)
            except FAILURES as error:
                self._is_unread = True
                self._tell(path, error)

    def _streamed(self) -> DataFrame | None:
        frames = self._views(self._loaded)
        if frames is None:
            return None
        self._at("Spark, to analyse the query")
        try:
            result = query(self._session, self._definition.sql, frames)
            _require_stream(result)
            self._require_row_wise(result)
        except FAILURES as error:
            self._tell("sql", error)
            return None
        return self._expected(result)

    def _loaded(self, source: Source, path: str) -> DataFrame:
        """Without the rows that are put aside because they cannot be read."""
        puts_aside = self._definition.puts_aside(source)
        frame = load(self._session.spark, source, path, puts_aside=puts_aside)
        return readable(frame) if puts_aside else frame

    def _require_row_wise(self, result: DataFrame) -> None:
        """Where rows are put aside that cannot be read."""
        definition = self._definition
        if definition.sql is not None and any(map(definition.puts_aside, definition.views.values())):
            require_row_wise(result)

    def _expected(self, result: DataFrame) -> DataFrame | None:
        """With its mask, which is not one of the columns that are shown."""
        try:
            return expected(self._session, result, self._definition.expect)
        except FAILURES as error:
            self._tell("expect", error)
            return None

    def _views(self, read: Callable[[Any, str], DataFrame | None]) -> dict[str, DataFrame] | None:
        """Each source as a frame; None if one of them is none."""
        frames: dict[str, DataFrame] = {}
        for view, source in self._definition.views.items():
            path = self._definition.path_of(view)
            self._at(f"the source {source.shown}")
            try:
                frame = _analysed(read(source, path))
            except FAILURES as error:
                self._tell(path, error)
                continue
            if frame is not None:
                frames[view] = frame
        return frames if len(frames) == len(self._definition.views) else None

    def _require_streamable(self, streamed: DataFrame) -> None:
        try:
            is_known = self._session.refuse_unsupported(streamed, self._definition.output_mode)
        except FAILURES as error:
            self._tell("output_mode" if "[STREAMING_OUTPUT_MODE" in text_of(error) else "sql", error)
            return
        if not is_known:
            note = "whether Spark can stream this in this output mode is found out when the task runs"
            self._findings.note("output_mode", f"behind a Spark Connect server, {note}")

    def _look_at_sink(self, streamed: DataFrame | None) -> None:
        sink = self._definition.sink
        if sink is None:
            return
        self._at(f"the sink {sink.shown}")
        try:
            if sink.spark_format is not None and not self._definition.is_fenced:
                self._session.require_format(sink.spark_format)
            for each in () if streamed is None else self._inspected(sink, streamed):
                tell = self._findings.note if each.is_fine else self._findings.problem
                tell(each.path, each.text)
        except FAILURES as error:
            self._tell("sink", error)

    def _look_at_quarantine(self) -> None:
        """What it would say of rows that are put aside, if they do not go beside those of the sink."""
        place = None if self._definition.quarantine is None else self._definition.quarantine.sink
        if place is None:
            return
        for note in reach(self._definition.sink, place):
            self._findings.note(note.path, note.text)
        self._at(f"the quarantine {place.shown}")
        try:
            session = self._session
            for each in inspect_sink(place, FIELDS, self._spec.group, lambda: session.spark):
                tell = self._findings.note if each.is_fine else self._findings.problem
                tell(f"quarantine{each.path.removeprefix('sink')}", each.text)
        except FAILURES as error:
            self._tell("quarantine", error)

    def _inspected(self, sink: Sink, streamed: DataFrame) -> Iterable[Finding]:
        return inspect_sink(sink, fields(streamed), self._spec.group, lambda: self._session.spark)

    def _show_rows(self) -> None:
        frames = self._views(self._sampled)
        if frames is None:
            return
        self._at("Spark, for rows of the sources")
        try:
            result = query(self._session, self._definition.sql, frames)
            rows = rendered(result, self._spec.rows, self._spec.begin)
        except FAILURES as error:
            self._tell("sql" if self._definition.sql else "source", error)
            return
        self._findings.rows(rows)
        if not rows:
            self._findings.note("", "of the rows that were looked at, none would be written")

    def _sampled(self, source: Source, path: str) -> DataFrame | None:
        """Of a source that the query does not read, the stream, which asks nobody."""
        if source.is_kafka and self._order and path not in self._order and not source.static:
            return load(self._session.spark, source, path)
        frame, note = sample(
            self._session.spark,
            source,
            path,
            self._spec.begin,
            self._backend.brokers,
            puts_aside=self._definition.puts_aside(source),
        )
        if note is not None:
            self._findings.note(path, note)
        return frame

    def _tell(self, path: str, error: BaseException) -> None:
        self._at("Spark, to say what is wrong")
        _tell(self._backend, self._findings, path, error, places_of_rows(self._definition))


def _analysed(frame: DataFrame | None) -> DataFrame | None:
    """The frame, whose columns are known: a server looks at it only when it has to."""
    if frame is not None:
        frame.schema  # noqa: B018 - the question is what it raises
    return frame


def _require_stream(frame: DataFrame) -> None:
    if not frame.isStreaming:
        raise QueryError.at("sql", "reads none of the sources that stream, so there is nothing to stream")


def _tell(
    backend: SparkBackend, findings: Findings, path: str, error: BaseException, places: Iterable[str] = ()
) -> None:
    """Note a problem down, unless it is none of the definition's.

    It is at the place that the error has; one of Spark's may begin with one of `places`, which only Spark
    could put there; else at `path`.

    Raises:
        QueryError: Spark is lost.
    """
    if backend.is_loss(error):
        raise QueryError("Spark does not answer any more") from error
    told = error if isinstance(error, QueryError) else refusal(error)
    place = told.path or next((each for each in places if told.cause.startswith(f"{each}: ")), path)
    findings.problem(place, told.cause.removeprefix(f"{place}: "))
