from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manager.console.pages.edit_task import LATER, RESTARTS, edit_task_page
from protocol.etags import etag_of
from protocol.messages.tasks import TaskResponse
from tests.unit.manager.console.answers import task


def found(name: str = "t", **fields: Any) -> TaskResponse:
    return TaskResponse(**msgspec.structs.asdict(task(name, **fields)))


def test_what_is_edited_is_all_of_it() -> None:
    """A definition with `***` in the place of a secret would be saved like that; the page says it is seen."""
    definition = msgspec.Raw(b'{"entrypoint":"a:b","options":{"password":"hunter2"}}')
    page = edit_task_page("flights", found(definition=definition))
    assert msgspec.json.decode(page.document) == msgspec.json.decode(definition)
    assert page.has_secrets
    refers = msgspec.Raw(b'{"entrypoint":"a:b","options":{"password":"${env:PW}"}}')
    assert not edit_task_page("flights", found(definition=refers)).has_secrets


def test_it_is_in_the_order_in_which_people_write_it() -> None:
    """It is stored in the order of the alphabet; what is in options keeps that."""
    definition = msgspec.Raw(
        b'{"restart":{"max_restarts":1},"sink":{"format":"noop"},'
        b'"source":{"format":"json","options":{"b":1,"a":2},"schema":"x INT"},"sql":"SELECT 1"}'
    )
    document = msgspec.json.decode(edit_task_page("g", found(definition=definition)).document)
    assert list(document) == ["source", "sql", "sink", "restart"]
    assert list(document["source"]) == ["format", "schema", "options"]
    assert list(document["source"]["options"]) == ["b", "a"]


def test_numbers_stay_as_they_are() -> None:
    """Those too that a browser's own numbers cannot hold, and whether they have a point."""
    definition = msgspec.Raw(b'{"entrypoint":"a:b","options":{"seed":9007199254740993},"weight":1.0}')
    document = edit_task_page("flights", found(definition=definition)).document
    assert "9007199254740993" in document
    assert '"weight": 1.0' in document


def test_a_change_is_of_the_task_as_it_was_read() -> None:
    """The tag is the one that the API gives for it; it is another one as soon as the target is."""
    running, paused = found(), found(target="PAUSED")
    assert edit_task_page("g", running).etag == etag_of(running.definition, "RUNNING")
    assert edit_task_page("g", paused).etag != edit_task_page("g", running).etag


@pytest.mark.parametrize(
    ("target", "effect"), [("RUNNING", RESTARTS), ("PAUSED", LATER.format(target="PAUSED"))]
)
def test_it_says_what_a_change_does(target: str, effect: str) -> None:
    """Before it is done: a query is restarted, one that is not to run is not."""
    assert edit_task_page("g", found(target=target)).effect == effect
