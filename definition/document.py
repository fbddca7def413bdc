"""The definition of a task: what it reads, what it does, where it writes (protocol §6).

The Structs here, in `definition.source` and in `definition.sink` are the one place where the names and types
are written down. What needs an SQL parser is checked by `definition.check`; what needs Spark (a format, a
path, a module) only the worker knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from definition.expectations import Expectation, expectation_faults
from definition.intervals import trigger_interval_fault
from definition.limits import Limits, heap_faults
from definition.memory import Memory
from definition.quarantine import OnError, Quarantine, quarantine_faults
from definition.reading import Constraint, Section, path_to, read, readable
from definition.references import find_problems
from definition.scheduling import Scheduling
from definition.sink import Sink
from definition.sinks.registry import fenced_formats
from definition.source import ONLY_SOURCE, Source, view_fault
from definition.spark_conf import setting_fault
from definition.values import IDENTIFIER, Text, blank_fault, nul_fault, reference_fault
from protocol.connectors import Needs
from protocol.messages.base import MAX_INT
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_BYTES = 1_048_576
"""Of a definition; Kafka Connect stores no larger one either (`max.request.size` of its producer).

A decoder holds up every other thread until it is done: two seconds for eight megabytes of brackets.
"""

_NO_WHOLE = "complete needs sql with an aggregate, such as SELECT a, count(*) ... GROUP BY a"

_ONLY_NEW_ROWS = (
    "must be fail unless output_mode is append: a row that is left out may have been written by a former"
    " batch"
)
_ENTRYPOINT = re.compile(rf"{IDENTIFIER}(\.{IDENTIFIER})*:{IDENTIFIER}\Z")


def _entrypoint_fault(text: str) -> str | None:
    return None if _ENTRYPOINT.match(text) else "is not of the form package.module:function"


def _weight_fault(weight: float) -> str | None:
    return None if 0 < weight < float("inf") else "must be a finite number above 0"


def _is_given(value: object) -> bool:
    """Whether a document has it, be it readable or not."""
    return not readable(value) or bool(value)


_ENTRYPOINT_SHOWN = msgspec.Meta(
    extra_json_schema={"pattern": rf"^{IDENTIFIER}(\.{IDENTIFIER})*:{IDENTIFIER}(?![\s\S])"}
)
_ABOVE_ZERO = msgspec.Meta(extra_json_schema={"exclusiveMinimum": 0})


class Trigger(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a batch starts; without a trigger, as soon as the one before is done."""

    processing_time: Annotated[str, Constraint(trigger_interval_fault)] | None = None
    available_now: bool = False

    def faults(self) -> Iterator[Problem]:
        """Exactly one of the two."""
        if self.processing_time is None and self.available_now is False:
            yield Problem("", "must have processing_time or available_now: true")
        if self.processing_time is not None and self.available_now is True:
            yield Problem("available_now", "cannot stand beside processing_time")


class Restart(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a failing query is started again before it is FAILED: `max_restarts` in any `window_ms`."""

    max_restarts: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 5
    window_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)] = 300_000


class Definition(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task, declarative (`source` or `sources`, `sql`, `sink`) or an `entrypoint` with its `options`.

    `weight`, `worker` (a pin) and `labels` are for the assignor, `exclusive` wants a worker to itself;
    `scheduling` is its share of a Spark that it has with others, `memory` what it has of its own;
    `spark_conf` is for its session.
    `expect` is what each row of the query's result has to be like, before it goes to the sink. `on_error` is
    what becomes of a row that cannot be read, or that the sink refuses. `quarantine` has what is put aside.
    `limits` are what its query may take at most.
    `fenced` is an entry point's word that it writes through `context.fence.guard` and in no other way.
    """

    source: Source | None = None
    sources: dict[str, Source] = msgspec.field(default_factory=dict)
    entrypoint: Annotated[str, Constraint(_entrypoint_fault), _ENTRYPOINT_SHOWN] | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    sql: Text | None = None
    expect: tuple[Expectation, ...] = ()
    on_error: OnError = "fail"
    quarantine: Quarantine | None = None
    sink: Sink | None = None
    output_mode: Literal["append", "update", "complete"] = "append"
    trigger: Trigger | None = None
    weight: Annotated[float, Constraint(_weight_fault), _ABOVE_ZERO] = 1.0
    worker: (
        Annotated[str, Constraint(blank_fault), Constraint(nul_fault), Constraint(reference_fault)] | None
    ) = None
    labels: dict[str, Annotated[str, Constraint(reference_fault)]] = msgspec.field(default_factory=dict)
    exclusive: bool = False
    scheduling: Scheduling | None = None
    memory: Memory | None = None
    spark_conf: dict[str, str] = msgspec.field(default_factory=dict)
    restart: Restart = Restart()
    limits: Limits | None = None
    fenced: bool = False

    @property
    def views(self) -> dict[str, Source]:
        """What its SQL can read, by the name of the view; none for an entry point."""
        return self.sources if self.source is None else {ONLY_SOURCE: self.source}

    def path_of(self, view: str) -> str:
        """The place in the document of the source that is read as `view`."""
        return ONLY_SOURCE if self.source is not None else f"sources.{view}"

    def puts_aside(self, source: Source) -> bool:
        """Whether rows of one of its sources that cannot be read are put aside."""
        return self.on_error == "quarantine" and not source.static and source.can_be_unreadable

    def with_sources(self, change: Callable[[str, Source], Source]) -> Definition:
        """The same with each source as `change` makes it, which is given the view that reads it, and it."""
        if self.source is not None:
            return msgspec.structs.replace(self, source=change(ONLY_SOURCE, self.source))
        sources = {view: change(view, source) for view, source in self.sources.items()}
        return msgspec.structs.replace(self, sources=sources)

    @property
    def needs(self) -> Needs:
        """What the Spark of its worker has to have, as far as the document says; an entry point does not."""
        sources = {name for source in self.views.values() for name in source.needs}
        sink = self.sink if self.entrypoint is None else None
        aside = None if self.quarantine is None else self.quarantine.sink
        if aside is not None and (name := aside.needs) is not None:
            sources.add(name)
        return Needs(tuple(sorted(sources)), None if sink is None else sink.needs)

    @property
    def is_fenced(self) -> bool:
        """Whether a former owner's writes are refused, so that the next one need not wait for its end."""
        if self.entrypoint is not None:
            return self.fenced
        return self.sink is not None and self.sink.format in fenced_formats()

    def faults(self) -> Iterator[Problem]:
        """A task is either declarative or an entry point, and has what belongs to that."""
        yield from self._source_faults()
        yield from find_problems(self.options, "options", for_spark=False)
        yield from self._conf_faults()
        yield from self._label_faults()
        yield from self._expectation_faults()
        yield from quarantine_faults(self)
        yield from heap_faults(self.limits, self.memory)
        if self.entrypoint is None and self.options:
            yield Problem("options", "goes with entrypoint; those of a source are source.options")
        if self.entrypoint is None and self.fenced is True:
            yield Problem("fenced", "goes with entrypoint; whether a sink is fenced its format says")
        if self.sink and (fault := self.sink.output_mode_fault(self.output_mode)):
            yield Problem("output_mode", fault)
        if self.source and self.sql is None and self.output_mode == "complete":
            yield Problem("output_mode", _NO_WHOLE)

    def _source_faults(self) -> Iterator[Problem]:
        """It reads one source, several by their names, or whatever its entry point reads."""
        given = [name for name in ("source", "sources", "entrypoint") if _is_given(getattr(self, name))]
        for other in given[1:]:
            yield Problem(other, f"cannot stand beside {given[0]}: a task has one or the other")
        if not given:
            yield Problem("source", "is required, unless there is an entrypoint")
        if given == ["entrypoint"] and self.sql is not None:
            yield Problem("sql", "goes with source: it reads the view of that name")
        if given and given[0] != "entrypoint" and self.sink is None:
            yield Problem("sink", f"is required with {given[0]}")
        if self.source is not None and readable(self.source) and self.source.static is True:
            yield Problem("source.static", "goes with one of several sources: a task has to stream something")
        if readable(self.sources):
            yield from self._view_faults()

    def _view_faults(self) -> Iterator[Problem]:
        """Names that SQL can read, one a source, and something that streams."""
        for name in self.sources:
            if fault := view_fault(name):
                yield Problem(path_to("sources", name), fault)
        if len({name.lower() for name in self.sources}) < len(self.sources):
            yield Problem("sources", "has two names that differ in case only, which SQL does not tell apart")
        if self.sources and self.sql is None:
            yield Problem("sql", "is required with sources: it says what becomes of them")
        if self.sources and all(source.static is True for source in self.sources.values()):
            yield Problem("sources", "are all static: a task has to stream something")

    def _conf_faults(self) -> Iterator[Problem]:
        if not readable(self.spark_conf):
            return
        yield from find_problems(self.spark_conf, "spark_conf")
        for key in self.spark_conf:
            if fault := setting_fault(key):
                yield Problem(path_to("spark_conf", key), fault)

    def _expectation_faults(self) -> Iterator[Problem]:
        """They are of a result that only a declarative task has, and only new rows can be left out of it."""
        if not readable(self.expect):
            return
        yield from expectation_faults(self.expect)
        if self.expect and self.entrypoint is not None:
            yield Problem("expect", "does not go with entrypoint: it is of the rows of a source or of sql")
        for at, each in enumerate(self.expect if self.output_mode != "append" else ()):
            if readable(each.on_violation) and each.sifts:
                yield Problem(f"expect[{at}].on_violation", _ONLY_NEW_ROWS)

    def _label_faults(self) -> Iterator[Problem]:
        for name in self.labels if readable(self.labels) else ():
            if fault := reference_fault(name):
                yield Problem(path_to("labels", name), fault)

    def runs_like(self, other: Definition) -> bool:
        """Whether a query of `other` may run on unchanged under this definition.

        True if they differ in nothing but weight, pin, labels, restart policy and what they say of a fence.
        """
        return self.effect() == other.effect()

    def effect(self) -> bytes:
        """All that the query itself depends on; as JSON, because 1 and true are not the same to Spark."""
        inert = msgspec.structs.replace(
            self, weight=1.0, worker=None, labels={}, exclusive=False, restart=Restart(), fenced=False
        )
        return msgspec.json.encode(inert, order="deterministic")


class DefinitionError(Exception):
    """A document is no definition; `problems` lists every fault with its place."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{each.path}: {each.message}".lstrip(": ") for each in problems))
        self.problems = problems


def parse_definition(document: bytes | msgspec.Raw) -> Definition:
    """The definition that `document`, JSON, holds.

    Raises:
        DefinitionError: with all problems at once.
    """
    try:
        value = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DefinitionError((Problem("", f"is not JSON: {error}"),)) from None
    definition, problems = read(value, Definition)
    if problems:
        raise DefinitionError(problems)
    return definition


class _FormatOf(msgspec.Struct):
    """The part of a sink that tells whether it is fenced."""

    format: str | None = None


class _Fencing(msgspec.Struct):
    """The part of a definition that tells whether it is fenced."""

    entrypoint: str | None = None
    sink: _FormatOf | None = None
    fenced: bool = False


def is_fenced(document: bytes | msgspec.Raw) -> bool:
    """`Definition.is_fenced` of a document that was found sound before, without reading all of it."""
    told = msgspec.json.decode(document, type=_Fencing)
    if told.entrypoint is not None:
        return told.fenced
    return told.sink is not None and told.sink.format in fenced_formats()
