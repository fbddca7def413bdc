from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from definition.check import check_definition
from manager.http.openapi.description import document, tag_of
from manager.http.openapi.examples import EXAMPLES, example_of
from protocol.error_meanings import MEANINGS
from protocol.errors import ErrorCode
from protocol.messages.base import ErrorResponse
from protocol.messages.tasks import ValidateTaskRequest
from tests.fakes.endpoints import api_endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(msgspec.json.encode(document(api_endpoints())))
    return whole


def operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in described["paths"].values():
        yield from methods.values()


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_an_example_is_read_as_a_request_or_answer_and_says_nothing_else(kind: type[msgspec.Struct]) -> None:
    """By the type that the manager reads or writes; what it would not know or would change is a fault."""
    example = EXAMPLES[kind]
    read = msgspec.json.decode(msgspec.json.encode(example), type=kind)
    written = json.loads(msgspec.json.encode(read))
    assert {name: written[name] for name in example} == example
    if "definition" in example:
        checked = check_definition(msgspec.json.encode(example["definition"]))
        assert isinstance(checked, tuple) is (kind is ValidateTaskRequest)


def test_every_body_has_an_example() -> None:
    """What is asked and what is answered."""
    kinds = {kind for each in api_endpoints() for kind in (each.body, each.response)} - {None}
    assert kinds == set(EXAMPLES)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_has_a_meaning_and_an_example(code: ErrorCode) -> None:
    """In the form that every error has, which names each field of it."""
    example = example_of(code, {"member_id": ""})
    assert example.keys() <= set(ErrorResponse.__struct_fields__)
    read = msgspec.json.decode(msgspec.json.encode(example), type=ErrorResponse)
    assert (read.error, read.message, read.retriable) == (code.name, MEANINGS[code], code.retriable)


def test_every_endpoint_but_pages_is_described(described: dict[str, Any]) -> None:
    """Under its own path and method."""
    found = {(method, path) for path, methods in described["paths"].items() for method in methods}
    expected = {(each.method.lower(), each.path) for each in api_endpoints()}
    assert found == expected
    assert ("get", "/openapi.json") in found


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    """Definitions included, which pass through unread."""
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert names == set(described["components"]["schemas"]) & names
    assert "Definition" in names


def test_names_in_a_path_are_parameters(described: dict[str, Any]) -> None:
    """All of them, and required."""
    for path, methods in described["paths"].items():
        for operation in methods.values():
            places = [each for each in operation.get("parameters", ()) if each["in"] == "path"]
            assert sorted(each["name"] for each in places) == sorted(re.findall(r"{(\w+)}", path))


def test_parameters_are_those_that_are_read(described: dict[str, Any]) -> None:
    """With their bounds, and never null: a query string has no such thing."""
    events = described["paths"]["/v1/events"]["get"]["parameters"]
    by_name = {each["name"]: each for each in events}
    assert by_name["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    assert (by_name["Last-Event-ID"]["in"], by_name["after"]["in"]) == ("header", "query")
    assert "null" not in json.dumps(events)
    [group] = described["paths"]["/v1/coordinator"]["get"]["parameters"]
    assert (group["name"], group["required"]) == ("group", True)


def test_refusals_are_told_apart_by_their_status(described: dict[str, Any]) -> None:
    """Each with its codes; a join's have what every error of a join carries."""
    refusals = described["paths"]["/v1/groups/{group}/tasks/{task}"]["delete"]["responses"]
    schema = refusals["404"]["content"]["application/json"]["schema"]["allOf"]
    assert schema[0] == {"$ref": "#/components/schemas/ErrorResponse"}
    assert schema[1]["properties"]["error"]["enum"] == ["GROUP_ID_NOT_FOUND", "UNKNOWN_TASK"]
    assert "Retry-After" in refusals["503"]["headers"]
    join = described["paths"]["/v1/groups/{group}/join"]["post"]["responses"]["428"]
    assert join["content"]["application/json"]["schema"]["allOf"][1]["required"] == [
        "generation_id",
        "member_id",
    ]


def test_each_operation_says_whose_token_it_takes(described: dict[str, Any]) -> None:
    """Or none, where the manager has none; what anybody may ask says nothing of tokens."""
    paths = described["paths"]
    assert paths["/v1/groups"]["get"]["security"] == [{}, {"token": ["viewer"]}]
    drain = paths["/v1/groups/{group}/members/{member_id}/drain"]["post"]
    assert drain["security"] == [{}, {"token": ["operator", "worker"]}]
    assert "Needs the role operator, or worker." in drain["description"]
    assert "security" not in paths["/healthz"]["get"]


def test_operations_are_sorted_by_what_they_are_about() -> None:
    """One word each."""
    assert {tag_of(each) for each in api_endpoints()} == {
        *(
            "members",
            "groups",
            "tasks",
            "assignors",
            "coordinator",
            "managers",
            "sinks",
            "events",
            "alarms",
            "audit",
            "manager",
        )
    }
