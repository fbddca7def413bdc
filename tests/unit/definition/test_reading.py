from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import pytest

from definition.reading import MOST_PROBLEMS, Constraint, Section, read
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator


def _blank(text: str) -> str | None:
    return None if text.strip() else "is blank"


Text = Annotated[str, Constraint(_blank)]


class Leaf(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Text
    last: bool = False

    def faults(self) -> Iterator[Problem]:
        if self.name == "last" and not self.last:
            yield Problem("last", "goes with that name")


class Tree(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    leaf: Leaf | None = None
    texts: tuple[Text, ...] = ()
    named: dict[str, Text] = msgspec.field(default_factory=dict)
    leaves: tuple[Leaf, ...] | None = None
    mixed: Leaf | str | None = None
    described: Annotated[Text | None, msgspec.Meta(description="with an annotation")] = None


LOOKED_AT: list[str] = []


def _wrong(text: str) -> str:
    LOOKED_AT.append(text)
    return "is wrong"


class Wrong(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wrong: dict[str, Annotated[str, Constraint(_wrong)]]


def test_a_sound_document_is_read_as_it_is() -> None:
    tree, problems = read({"leaf": {"name": "a"}, "texts": ["b"], "named": {"c": "d"}, "mixed": "e"}, Tree)
    assert problems == ()
    assert tree == Tree(leaf=Leaf(name="a"), texts=("b",), named={"c": "d"}, mixed="e")


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"leaf": {"name": " "}}, "leaf.name"),
        ({"leaf": {"name": "last"}}, "leaf.last"),
        ({"texts": ["a", ""]}, "texts[1]"),
        ({"named": {"a": "b", "c": ""}}, "named.c"),
        ({"leaves": [{"name": "a"}, {"name": ""}]}, "leaves[1].name"),
        ({"mixed": {"name": ""}}, "mixed.name"),
        ({"described": ""}, "described"),
    ],
)
def test_no_fault_is_overlooked_wherever_it_is(document: object, path: str) -> None:
    _, problems = read(document, Tree)
    assert [problem.path for problem in problems] == [path]


def test_a_list_of_problems_comes_to_an_end() -> None:
    """Whoever made that many looks for one cause; the last of them says that there are more."""
    many = {"wrong": {str(number): "x" for number in range(5 * MOST_PROBLEMS)}}
    few = {"wrong": {str(number): "x" for number in range(MOST_PROBLEMS)}}
    LOOKED_AT.clear()
    problems = read(many, Wrong, "here")[1]
    assert len(LOOKED_AT) < 2 * MOST_PROBLEMS
    assert [problem.path for problem in problems[:-1]] == [
        f'here.wrong["{number}"]' for number in range(MOST_PROBLEMS)
    ]
    assert problems[-1] == Problem("here", f"has more problems than these {MOST_PROBLEMS}")
    assert len(read(few, Wrong)[1]) == MOST_PROBLEMS
