"""What differs between two definitions, and what is not shown of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.task_files.differences import differences

keys = st.text("abc. ", min_size=1, max_size=3)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["~ a: 1 -> true"]),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, ["- a.b: 1", "+ a.c: 2"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ["~ a[1].b: 2 -> 3"]),
        ({"key": []}, {"key": ["id"]}, ['~ key: [] -> ["id"]']),
        ({"a b": 1}, {}, ['- ["a b"]: 1']),
        (
            {"trigger": None},
            {"trigger": {"available_now": True}},
            ['~ trigger: null -> {"available_now":true}'],
        ),
    ],
)
def test_each_place_is_named(before: Any, after: Any, lines: list[str]) -> None:
    """One line a place: what came, what went, what changed."""
    assert [str(each) for each in differences(before, after)] == lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"url": "postgresql://me:hunter2@h/d"}, {"url": "postgresql://me:hunter3@h/d"}),
        (
            {"url": "postgresql://h/d?password=hunter2"},
            {"url": "postgresql://h/d?password=hunter3&sslmode=x"},
        ),
        ({"options": {"password": "hunter2"}}, {"options": {"password": "hunter3"}}),
        ({"fs.s3a.secret.key": "hunter2"}, {}),
        ({}, {"conf": {"accessKey": ["hunter2", {"x": "hunter3"}]}}),
        ({}, {"kafka.sasl.jaas.config": 'x password="hunter2"'}),
    ],
)
def test_secrets_are_not_shown(before: Any, after: Any) -> None:
    """That they differ is told, what they are is not."""
    found = differences(before, after)
    assert len(found) == 1
    assert "hunter" not in repr(found) + str(found[0])
    assert "***" in str(found[0])


def test_a_change_that_cannot_be_seen_says_so() -> None:
    """Two passwords look alike when both are hidden."""
    line = str(differences({"token": "a"}, {"token": "b"})[0])
    assert line == '~ token: "***" -> "***"  (differs in what is hidden)'


@given(documents)
def test_a_document_does_not_differ_from_its_copy(document: Any) -> None:
    """Nothing to apply is nothing to show."""
    assert differences(document, deepcopy(document)) == []


@given(documents, documents)
def test_the_other_way_round_is_the_same_turned_round(one: Any, other: Any) -> None:
    """The same places, before and after exchanged; no difference only if there is none."""
    there = {(each.path, repr(each.before), repr(each.after)) for each in differences(one, other)}
    back = {(each.path, repr(each.after), repr(each.before)) for each in differences(other, one)}
    assert there == back
    assert (there == set()) == (repr(sorted_keys(one)) == repr(sorted_keys(other)))


def sorted_keys(document: Any) -> Any:
    """The document with its keys in order: to JSON, the order of keys is nothing."""
    if isinstance(document, dict):
        return {key: sorted_keys(document[key]) for key in sorted(document)}
    return [sorted_keys(item) for item in document] if isinstance(document, list) else document
