"""Fenced formats of sinks: those built in, and those that packages plug in."""

from __future__ import annotations

import importlib
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from definition.document import DefinitionError, is_fenced, parse_definition
from definition.sinks import registry
from definition.sinks.description import described_sinks
from definition.sinks.registry import BUILT_IN, fenced_formats, plugged_in, sink_format
from protocol.connectors import BUILT_IN as IN_EVERY_SPARK
from protocol.connectors import PACKAGES
from protocol.messages.sinks import DescribedSink
from worker.sinks.errors import SinkError
from worker.sinks.factory import inspect_sink, newest_fence, open_sink
from worker.sinks.fence import FenceRow, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FORMAT = """
from sparkherd import Problem, Section, Sink, SinkFormat, Supports, FenceRow, Written

class LedgerOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    pages: int = 1

    def faults(self):
        if self.pages == 0:
            yield Problem("pages", "must not be 0")

class LedgerFormat(SinkFormat):
    name = "ledger"
    options = LedgerOptions
    supports = Supports(output_modes=("append",), partition_by=True)
    writer = "ledger:LedgerSink"

    def output_mode_fault(self, options, output_mode):
        return "must be another with 13 pages" if options.get("pages") == 13 else None

class LedgerSink(Sink):
    def __init__(self, task):
        self.task = task

    @classmethod
    def open(cls, task):
        return cls(task)

    @property
    def place(self):
        return self.task.options.path

    def claim(self):
        return FenceRow(self.task.owner.token)

    def newest(self):
        return FenceRow(7)

    def prepare(self, fields):
        pass

    def write(self, batch):
        return Written(0, 0)

    def close(self):
        pass
"""


FORGETFUL = """
class LedgerFormat(Told):
    needs = "ledger"
    seen = []

    def __getattribute__(self, name):
        if name == %r:
            LedgerFormat.seen.append(name)
            if len(LedgerFormat.seen) > 1:
                raise RuntimeError(name)
        return super().__getattribute__(name)
"""


def _with(member: str) -> str:
    """The format with one more member, the last of its name."""
    place = "    def output_mode_fault"
    return FORMAT.replace(place, f"    {member}\n\n{place}")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a package into this process that offers formats by the places of their classes."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(code: str = FORMAT, **offered: str) -> None:
        (tmp_path / "ledger.py").write_text(code)
        info = tmp_path / "ledger-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger\nVersion: 1\n")
        lines = "\n".join(f"{name} = {place}" for name, place in (offered or LEDGER).items())
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}\n")
        importlib.invalidate_caches()
        _forget()

    yield install
    monkeypatch.undo()
    sys.modules.pop("ledger", None)
    _forget()


SPARK_S = IN_EVERY_SPARK | PACKAGES.keys() | registry.SPARK_S_OWN.keys()
LEDGER = {"ledger": "ledger:LedgerFormat"}


def _forget() -> None:
    registry._offered.cache_clear()
    fenced_formats.cache_clear()
    sink_format.cache_clear()


def _document(sink: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"source": {"format": "rate"}, "sink": sink, **more}).encode()


def _problems(sink: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(_document(sink, **more))
    return [(each.path, each.message) for each in refused.value.problems]


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_of_ours_is_found_under_its_name(name: str) -> None:
    """And says which class of the worker's writes it."""
    own = sink_format(name)
    assert own is not None
    assert own.name == name
    module, _, writer = own.writer.partition(":")
    assert hasattr(importlib.import_module(module), writer)


def test_what_a_package_plugs_in_is_fenced_and_needed(installed: Callable[..., None]) -> None:
    """Its name makes a task fenced, and a worker that has it the only one that can run it."""
    assert not is_fenced(_document({"format": "ledger", "options": {"path": "x"}}))
    installed()
    document = _document({"format": "ledger", "options": {"path": "x"}, "partition_by": ["day"]})
    definition = parse_definition(document)
    assert is_fenced(document)
    assert definition.is_fenced
    assert definition.needs.sink == "ledger"
    assert plugged_in() == ("ledger",)
    assert definition.sink is not None
    assert definition.sink.read_options().pages == 1


def test_its_options_are_judged_as_ours_are(installed: Callable[..., None]) -> None:
    """All mistakes at once, each with its place."""
    installed()
    assert _problems({"format": "ledger", "table": "t", "options": {"pages": 0, "pgaes": 1}}) == [
        ("sink.table", "does not go with the sink ledger"),
        ("sink.options.pgaes", "unknown key; did you mean pages?"),
        ("sink.options.path", "is required"),
        ("sink.options.pages", "must not be 0"),
    ]
    sound = {"format": "ledger", "options": {"path": "x"}}
    assert _problems(sound, output_mode="update") == [("output_mode", "must be append with the sink ledger")]
    unlucky = {"format": "ledger", "options": {"path": "x", "pages": 13}}
    assert _problems(unlucky) == [("output_mode", "must be another with 13 pages")]


@pytest.mark.parametrize(
    ("place", "code", "why"),
    [
        ("ledger:LedgerFormat", "import nowhere", "cannot be imported: ModuleNotFoundError"),
        ("ledger:LedgerSink", FORMAT, "is no subclass of sparkherd.SinkFormat"),
        ("ledger:LedgerFormat", FORMAT.replace('name = "ledger"', 'name = "book"'), "has another name"),
        ("ledger:LedgerFormat", FORMAT.replace("    writer", "    author"), "lacks a writer"),
        ("ledger:LedgerFormat", "import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("ledger:LedgerFormat", "raise OSError('no ' + chr(0xD800))", "cannot be imported: OSError: no ?"),
        ("ledger:LedgerFormat", _with("def __init__(self, x): pass"), "cannot be used: TypeError"),
        ("ledger:LedgerFormat", _with("supports = 'append'"), "has supports that are no sparkherd.Supports"),
        ("ledger:LedgerFormat", FORMAT.replace('("append",)', "None"), "got `null` - at `$.output_modes`"),
        ("ledger:LedgerFormat", FORMAT.replace('("append",)', "()"), "length >= 1 - at `$.output_modes`"),
        ("ledger:LedgerFormat", FORMAT.replace('"append",', '"apend",'), "Invalid enum value 'apend'"),
        ("ledger:LedgerFormat", FORMAT.replace("by=True", "by=3"), "got `int` - at `$.partition_by`"),
        ("ledger:LedgerFormat", _with("supports = property(lambda self: 1 / 0)"), "cannot be used: ZeroDiv"),
        ("ledger:LedgerFormat", _with("needs = property(lambda self: 1 / 0)"), "cannot be used: ZeroDiv"),
        ("ledger:LedgerFormat", _with("needs = chr(0xD800)"), "cannot be used: UnicodeEncodeError"),
        ("ledger:LedgerFormat", _with("__doc__ = 5"), "cannot be used: ValidationError"),
        ("ledger:LedgerFormat", _with("options = dict"), "has options that are no sparkherd.Section"),
        ("ledger:LedgerFormat", _with("needs = 5"), "has needs that are neither a text nor None"),
        ("ledger:LedgerFormat", FORMAT.replace("path: str", "path: 'Nowhere'"), "cannot be used: NameError"),
    ],
)
def test_what_is_of_no_use_is_refused_with_the_reason(
    place: str, code: str, why: str, installed: Callable[..., None]
) -> None:
    """Where a definition is checked, and on a worker that has one; nobody tells that it has the format."""
    installed(code, ledger=place)
    assert why in dict(_problems({"format": "ledger", "options": {"path": "x"}}))["sink.format"]
    assert plugged_in() == ()
    described = msgspec.json.decode(msgspec.json.encode(described_sinks()), type=tuple[DescribedSink, ...])
    assert [each.format for each in described if each.trouble] == ["ledger"]
    sink = parse_definition(_document({"format": "noop"})).sink
    assert sink is not None
    with pytest.raises(SinkError, match=re.escape(why)):
        open_sink(type(sink)(format="ledger"), Owner("g", "t", 1))


def test_it_is_described(installed: Callable[..., None]) -> None:
    """What its docstring and its options say; one that cannot be used says why."""
    installed(FORMAT.replace("    name =", '    """Rows as text."""\n\n    name ='))
    [ledger] = [each for each in described_sinks() if each.format == "ledger"]
    assert (ledger.about, ledger.needs, ledger.output_modes) == ("Rows as text", "ledger", ("append",))
    assert (ledger.partition_by, ledger.table, ledger.trouble) == (True, False, None)
    assert ledger.options["properties"]["path"] == {"type": "string"}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import nowhere", "cannot be imported: ModuleNotFoundError"),
        (FORMAT.replace("path: str", "path: slice"), "its options have no JSON Schema"),
        (FORMAT.replace("path: str", "path: str = chr(0xD800)"), "no JSON Schema: UnicodeEncodeError"),
    ],
)
def test_what_cannot_be_described_says_why(code: str, why: str, installed: Callable[..., None]) -> None:
    """The others are described all the same."""
    installed(code)
    described = {each.format: each for each in described_sinks()}
    assert why in str(described["ledger"].trouble)
    assert described["sql"].trouble is None


@pytest.mark.parametrize(
    ("code", "place"),
    [
        (_with("def option_faults(self, options): return None"), "sink.format"),
        (_with("def option_faults(self, options): return ['bad']"), "sink.format"),
        (_with("def option_faults(self, options): return [Problem(1, 2)]"), "sink.format"),
        (_with("def option_faults(self, options): return [Problem('x', chr(0xD800))]"), "sink.format"),
        (_with("def table_faults(self, table, options): raise SystemExit"), "sink.format"),
        (_with("def table_faults(self, table, options): raise KeyboardInterrupt"), "sink.format"),
        (
            _with("def option_faults(self, options): import asyncio; raise asyncio.CancelledError"),
            "sink.format",
        ),
        (FORMAT.replace("        return ", "        raise RuntimeError\n        return ", 1), "output_mode"),
        (FORMAT.replace('"must be another with 13 pages" if', "5 if 5 or"), "output_mode"),
    ],
)
def test_what_it_cannot_answer_is_told_as_a_fault_of_its_package(
    code: str, place: str, installed: Callable[..., None]
) -> None:
    """Whoever writes a definition gets an answer, not an error of the manager's."""
    installed(code)
    problems = dict(_problems({"format": "ledger", "options": {"path": "x"}}))
    assert "the package that brings ledger is at fault" in problems[place]


@pytest.mark.parametrize("attribute", ["name", "supports", "writer", "needs"])
def test_its_attributes_are_read_once(attribute: str, installed: Callable[..., None]) -> None:
    """Another reading might raise, or give what nobody has judged."""
    installed(FORMAT.replace("LedgerFormat(SinkFormat)", "Told(SinkFormat)") + FORGETFUL % attribute)
    document = _document({"format": "ledger", "options": {"path": "x"}})
    for _ in range(2):
        definition = parse_definition(document)
        assert definition.needs.sink == "ledger"
        assert {each.trouble for each in described_sinks()} == {None}
        assert definition.sink is not None
        assert open_sink(definition.sink, Owner("g", "t", 1)) is not None


@pytest.mark.parametrize("name", [*sorted(SPARK_S - BUILT_IN.keys()), "PARQUET"])
def test_spark_keeps_the_names_of_its_own_formats(name: str, installed: Callable[..., None]) -> None:
    """A worker without the package would write there without the fence that the manager counts on."""
    document = _document({"format": name})
    installed(FORMAT.replace('"ledger"', f'"{name}"'), **{name: "ledger:LedgerFormat"})
    assert plugged_in() == ()
    assert not is_fenced(document)
    sink = parse_definition(document).sink
    assert sink is not None
    assert sink.fenced is None
    [told] = [each for each in described_sinks() if each.format == name]
    assert "is refused: the name is that of one of Spark's own formats" in str(told.trouble)


@pytest.mark.parametrize("answer", ["5", "chr(0xD800)", "1 / 0"])
def test_what_it_says_of_a_reset_is_a_text(answer: str, installed: Callable[..., None]) -> None:
    """Else the answer to whoever asks for a reset could not be sent."""
    installed(_with(f"def written_again(self, table, options): return {answer}"))
    own = sink_format("ledger")
    assert own is not None
    assert "the package that brings ledger is at fault, written_again: " in own.written_again(None, {})


def test_a_secret_in_what_a_package_raises_is_not_shown(installed: Callable[..., None]) -> None:
    """Viewers see it, and whoever wrote the package did not think of them."""
    installed("raise RuntimeError('no postgresql://ledger:hunter2@db/x, token=hunter2' + ' and so on' * 99)")
    [ledger] = [each for each in described_sinks() if each.format == "ledger"]
    assert "cannot be imported: RuntimeError: no postgresql://ledger:***@db/x" in str(ledger.trouble)
    assert "hunter2" not in str(ledger.trouble)
    assert len(str(ledger.trouble)) < 400


def test_an_exception_that_cannot_be_shown_is_named(installed: Callable[..., None]) -> None:
    """Its text is a package's code as well."""
    installed("class Odd(Exception):\n    def __str__(self): return 1 / 0\n\nraise Odd")
    assert (
        "cannot be imported: Odd: it cannot be shown" in dict(_problems({"format": "ledger"}))["sink.format"]
    )


def test_a_reset_of_what_cannot_be_used_is_told_what_is_known(installed: Callable[..., None]) -> None:
    """A definition that was sound before a package broke can still be asked about."""
    installed("import nowhere")
    own = sink_format("ledger")
    assert own is not None
    assert "cannot be imported" in own.written_again(None, {})


def test_two_packages_with_one_name_are_told(installed: Callable[..., None], tmp_path: Path) -> None:
    """Which of them would judge and write hangs on the order of a path; the same class twice is no other."""
    other = tmp_path / "other-1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (other / "entry_points.txt").write_text(f"[{registry.GROUP}]\nledger = ledger:LedgerFormat\n")
    installed()
    assert plugged_in() == ("ledger",)
    (other / "entry_points.txt").write_text(f"[{registry.GROUP}]\nledger = other:Other\n")
    importlib.invalidate_caches()
    _forget()
    assert plugged_in() == ()
    [problem] = _problems({"format": "ledger", "options": {"path": "x"}})
    assert problem[1].startswith(
        "ledger is offered by several packages, at ledger:LedgerFormat and other:Other"
    )


def test_a_worker_opens_it(installed: Callable[..., None]) -> None:
    """With the options as the format reads them; asked for its fence, and for its opinion of columns."""
    installed()
    sink = parse_definition(_document({"format": "ledger", "options": {"path": "x"}})).sink
    assert sink is not None
    opened = open_sink(sink, Owner("g", "t", 1))
    assert opened is not None
    assert opened.place == "x"
    assert newest_fence(sink, Owner("g", "t", 0)) == FenceRow(7)
    [note] = inspect_sink(sink, [], "g")
    assert (note.path, note.is_fine) == ("sink", True)


@pytest.mark.parametrize(
    ("writer", "why"),
    [("nowhere:Sink", "cannot be imported"), ("ledger:LedgerOptions", "is no sparkherd.Sink")],
)
def test_a_writer_that_is_not_there_is_named(writer: str, why: str, installed: Callable[..., None]) -> None:
    """A manager does not look for it; the worker's cause says where it was looked for."""
    installed(FORMAT.replace("ledger:LedgerSink", writer))
    sink = parse_definition(_document({"format": "ledger", "options": {"path": "x"}})).sink
    assert sink is not None
    with pytest.raises(SinkError, match=f"sink.format: ledger.*{writer}.*{why}"):
        open_sink(sink, Owner("g", "t", 1))
