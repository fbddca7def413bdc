"""docs/protocol.md is the contract: its diagrams, codes, fields and settings are those of the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from configuration.settings import settings_of
from definition.document import Definition
from manager.core import group_states
from manager.settings import GroupSettings
from protocol.error_meanings import MEANINGS
from protocol.errors import ErrorCode
from protocol.states import GroupState, TaskState
from protocol.worker_metadata import WorkerMetadata
from tests.fakes.endpoints import api_endpoints
from tests.unit.docs.contract import PAGES, bodies, default_of, field_tables, listed_fields
from worker.membership import states
from worker.membership.reactions import TABLE, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import Enum

PAGE = PAGES["protocol"]
BODIES: list[type[msgspec.Struct]] = [*bodies(), WorkerMetadata, Definition]
CODE = re.compile(r"\| `([A-Z_]+)` \| (\d+) \| (final|retriable) \| (\S.*) \|")
OPERATION = re.compile(r"`(GET|POST) (/[^`?]*)")
ROW = re.compile(r"^\| ([A-Z, ]+) \| `(/[^`]+)` \|", re.MULTILINE)
SETTING = re.compile(r"^\| `(--[a-z-]+)` \| (?:`(.*)`)? \|", re.MULTILINE)
REACTION = re.compile(r"^\| (`[A-Z_`, ]+`) \| ((?:[a-z]+(?:, )?)+) \|", re.MULTILINE)


def diagram(initial: Enum, moves: Iterable[tuple[Any, Iterable[Enum], Enum]]) -> str:
    """The table in Mermaid's words."""
    arrows = [
        f"    {source.value} --> {target.value}: {move}"
        for move, sources, target in moves
        for source in sources
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {initial.value}", *arrows, "```"])


@pytest.mark.parametrize(
    ("initial", "moves"),
    [(GroupState.EMPTY, group_states.TRANSITIONS), (states.MemberState.DOWN, states.TRANSITIONS)],
)
def test_the_diagrams_are_drawn_from_the_tables(initial: Enum, moves: Any) -> None:
    """What the failure shows is what belongs into the page."""
    assert diagram(initial, moves) in PAGE


def test_the_table_of_codes_is_that_of_the_code() -> None:
    """In the same order; each with its status, whether a retry can help, and what it means."""
    rows = [match.groups() for match in map(CODE.fullmatch, PAGE.splitlines()) if match]
    codes = [
        (code.name, str(code.status), "retriable" if code.retriable else "final", MEANINGS[code])
        for code in ErrorCode
    ]
    assert rows == codes


def test_the_table_of_settings_has_all_that_the_group_core_goes_by() -> None:
    """Each with its default, but for webhooks and the like: docs/settings.md has those."""
    defaults = {each.flag: each.default for each in settings_of(GroupSettings)}
    assert dict(SETTING.findall(PAGE)) == {
        flag: "" if default is None else str(default) for flag, default in defaults.items()
    }


@pytest.mark.parametrize("struct", BODIES, ids=lambda struct: struct.__name__)
def test_every_body_has_its_fields_in_the_page(struct: type[msgspec.Struct]) -> None:
    """In the order of the code; a table with defaults has those of the code."""
    fields = msgspec.structs.fields(struct)
    table = field_tables().get(struct.__name__)
    if table is None:
        assert listed_fields()[struct.__name__] == [each.encode_name for each in fields]
    elif all(len(row) > 1 for row in table):
        assert table == [(each.encode_name, default_of(each)) for each in fields]
    else:
        assert [row[0] for row in table] == [each.encode_name for each in fields]


def test_every_operation_is_told_and_no_other() -> None:
    """By method and path; requests of members in their sections, the others in one table."""
    operations = set(OPERATION.findall(PAGE))
    operations |= {(method, path) for methods, path in ROW.findall(PAGE) for method in methods.split(", ")}
    assert operations == {(each.method, each.path) for each in api_endpoints()}


def test_no_body_is_told_that_is_not_there() -> None:
    """What was taken out of the code goes from the page."""
    known = {struct.__name__ for struct in BODIES}
    assert field_tables().keys() | listed_fields().keys() == known


def test_the_reactions_of_a_worker_are_those_of_the_table() -> None:
    """Which codes to which requests; what is done about them is for people to compare."""
    told = {
        (
            frozenset(re.findall(r"`(\w+)`", codes)),
            frozenset(RequestKind if to == "any" else map(RequestKind, to.split(", "))),
        )
        for codes, to in REACTION.findall(PAGE.partition("### 7.1")[2].partition("### 7.2")[0])
    }
    assert told == {(frozenset(code.name for code in row.codes), row.to) for row in TABLE}


@pytest.mark.parametrize(("section", "kind"), [("4.1", GroupState), ("5.8", TaskState)])
def test_every_state_has_its_line(section: str, kind: type[Enum]) -> None:
    """Of groups and of tasks; several may share one."""
    text = PAGE.partition(f"### {section} ")[2].partition("\n### ")[0]
    cells = re.findall(r"^\| ([A-Za-z, ]+) \| ", text, re.MULTILINE)
    told = [state for cell in cells for state in cell.split(", ") if cell != "state"]
    assert sorted(told) == sorted(state.value for state in kind)
