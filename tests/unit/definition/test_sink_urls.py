"""URLs of SQL sinks, before anybody connects to anything."""

from __future__ import annotations

import json

import pytest

from definition.check import check_definition
from definition.sinks.urls import url_fault
from tests.unit.definition.sink_url_corpus import REFUSED, TAKEN, UNOPENED


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_of_no_use_is_refused_when_the_task_is_created(url: str) -> None:
    """With the option's name and its place in the definition, and without any value."""
    sink = {"format": "sql", "options": {"url": url, "table": "t"}}
    problems = check_definition(json.dumps({"source": {"format": "rate"}, "sink": sink}).encode())
    assert isinstance(problems, tuple)
    [problem] = problems
    assert problem.path == "sink.options.url"
    assert REFUSED[url] in problem.message
    assert "secret" not in problem.message


@pytest.mark.parametrize("url", TAKEN)
def test_a_url_that_may_be_of_use(url: str) -> None:
    """What stands for a secret, or beside one, is for the worker to check."""
    assert url_fault(url) is None


@pytest.mark.parametrize("url", UNOPENED)
def test_what_only_the_driver_knows_is_left_to_it(url: str) -> None:
    """A value or None, and never an error."""
    assert "secret" not in (url_fault(url) or "")
