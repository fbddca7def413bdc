from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.etags import ALWAYS, Conditions, ListTag, Tags, etag_of

MINE = etag_of(b'{"a":1}', "RUNNING")
OTHER = etag_of(b'{"a":2}', "RUNNING")


def test_a_tag_is_of_definition_and_target() -> None:
    """Strong, and the same for the same."""
    assert re.fullmatch(r'"[0-9a-f]{24}"', MINE)
    assert etag_of(msgspec.Raw(b'{"a":1}'), "RUNNING") == MINE
    assert len({MINE, OTHER, etag_of(b'{"a":1}', "PAUSED")}) == 3


def test_a_list_s_tag_is_of_each_task_s_name_definition_and_target() -> None:
    """Whichever order they come in, and wherever one ends and the next begins."""
    one, two = ("a", b"{}", "RUNNING"), ("b", b"[]", "PAUSED")
    lists = [
        (one, two),
        (one,),
        (one, ("c", b"[]", "PAUSED")),
        (one, ("b", b"[]", "STOPPED")),
        (one, ("b", b"{}", "PAUSED")),
        (("a", b"{}b PAUSED []", "RUNNING"),),
        (("a", b"{}b PAUSED 2 []", "RUNNING"),),
    ]
    assert len({str(ListTag(each)) for each in lists}) == len(lists)
    assert str(ListTag((two, one))) == str(ListTag((one, two)))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([b"{}", b"[]"]), st.sampled_from("RS"))))
def test_a_list_s_tag_is_the_same_whichever_way_the_list_came_about(
    steps: list[tuple[str, bytes, str]],
) -> None:
    """Tasks come, change and go: it is that of a list which was there at once."""
    kept: dict[str, tuple[bytes, str]] = {}
    tag = ListTag()
    for name, definition, target in steps:
        if (before := kept.pop(name, None)) is not None:
            tag.remove(name, *before)
        if before != (definition, target):
            kept[name] = definition, target
            tag.add(name, definition, target)
        assert str(tag) == str(ListTag((each, *what) for each, what in kept.items()))


@pytest.mark.parametrize(
    ("header", "present", "is_refused"),
    [
        (None, MINE, False),
        (None, None, False),
        (MINE, MINE, False),
        (f"{OTHER}, {MINE}", MINE, False),
        (OTHER, MINE, True),
        (f"W/{MINE}", MINE, True),
        ("*", MINE, False),
        ("*", None, True),
        (MINE, None, True),
    ],
)
def test_if_match_holds_for_the_task_as_it_is(
    header: str | None, present: str | None, *, is_refused: bool
) -> None:
    """RFC 9110 §13.1.1: compared strongly, and never met by what is not there."""
    assert Conditions(if_match=header).is_other(present) is is_refused


@pytest.mark.parametrize(
    ("header", "present", "is_same"),
    [
        (None, MINE, False),
        (MINE, MINE, True),
        (f'"x" ,{MINE}', MINE, True),
        (f"W/{MINE}", MINE, True),
        (OTHER, MINE, False),
        ("*", MINE, True),
        ("*", None, False),
        (MINE, None, False),
    ],
)
def test_if_none_match_is_met_by_anything_else(
    header: str | None, present: str | None, *, is_same: bool
) -> None:
    """RFC 9110 §13.1.2: compared weakly."""
    assert Conditions(if_none_match=header).is_same(present) is is_same


def test_without_conditions_nothing_is_refused() -> None:
    """Whether there is something or not."""
    for present in (MINE, None):
        assert not ALWAYS.is_other(present)
        assert not ALWAYS.is_same(present)


@pytest.mark.parametrize(
    "text", ["", "x", '"x', 'x"', '"a" "b"', '"a",', "*, *", '"a\n"', '"a"\n', 'w/"a"', '"ä"']
)
def test_what_is_no_list_of_tags_is_refused(text: str) -> None:
    """To overlook a condition would be to change what must not be changed."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"If-Match": text}, Conditions)
    assert not re.search(get_args(Tags)[1].pattern, text)
