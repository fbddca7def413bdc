"""`/openapi.json`: the endpoints as OpenAPI 3.1, from the very types that parse requests and make answers."""

from __future__ import annotations

from functools import cached_property
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from definition.document import Definition
from manager.http.endpoint import CREATED, NOT_MODIFIED, Endpoint
from manager.http.front.parameters import parameters_of
from manager.http.front.replying import JSON
from manager.http.openapi.examples import EXAMPLES, example_of
from manager.http.openapi.links import LINKS
from protocol.error_meanings import MEANINGS
from protocol.errors import RETRY_AFTER_S, ErrorCode
from protocol.messages.base import ErrorResponse
from protocol.messages.quarantine import RowId
from protocol.names import Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manager.http.endpoint import Plain

REF: Final = "#/components/schemas/{name}"
DESCRIPTION: Final = (
    "Kafka's group protocol and the tasks of a group, over HTTP/JSON. Every answer has `error`: `NONE` or"
    " a code. Requests of admins may go to any manager, which passes them on; members look for their"
    " coordinator."
)
BEARER: Final = {"type": "http", "scheme": "bearer", "description": "A token that `sparkherd tokens` made."}
PATH_NAMES: Final[dict[str, Any]] = {
    "group": msgspec.json.schema(Name),
    "task": msgspec.json.schema(Name),
    "member_id": {"type": "string", "minLength": 1, "description": "as its first join answered"},
    "transfer": msgspec.json.schema(Name),
    "row": msgspec.json.schema(RowId),
    "silence": {"type": "string", "minLength": 1, "description": "the `id` of a silence"},
    "receiver": msgspec.json.schema(Name),
}
HEADERS: Final[dict[str, Any]] = {
    "ETag": {
        "description": "Of definition and target, not of status; that of a list is of all in it.",
        "schema": {"type": "string"},
    },
    "Location": {"description": "Where it is.", "schema": {"type": "string"}},
}
_Document = dict[str, Any]


class OpenApiHandlers:
    """GET /openapi.json."""

    def __init__(self, others: Iterable[Endpoint]) -> None:
        self._others = others

    def endpoints(self) -> list[Endpoint]:
        """The one path of the description itself."""
        return [
            Endpoint(
                "GET",
                "/openapi.json",
                "getOpenApi",
                "The description of the API",
                self.show,
                role=None,
                response=None,
            )
        ]

    async def show(self, _: Plain) -> web.Response:
        """The document; it does not change while the manager runs."""
        return web.Response(body=self._document, content_type=JSON)

    @cached_property
    def _document(self) -> bytes:
        return msgspec.json.encode(document([*self._others, *self.endpoints()]))


def document(endpoints: Iterable[Endpoint]) -> _Document:
    """The description of these endpoints; tokens may be left out, as long as a manager has none."""
    described = tuple(endpoints)
    kinds = {kind: None for each in described for kind in (each.body, each.response) if kind is not None}
    _, schemas = msgspec.json.schema_components([*kinds, Definition, ErrorResponse], ref_template=REF)
    paths: _Document = {}
    for each in described:
        operation = _operation(each) | ({"security": _security(each)} if each.role else {})
        paths.setdefault(each.path, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "sparkherd", "version": version("sparkherd"), "description": DESCRIPTION},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": BEARER}},
    }


def _security(endpoint: Endpoint) -> list[_Document]:
    return [{}, {"token": sorted(role.value for role in endpoint.roles)}]


def _operation(endpoint: Endpoint) -> _Document:
    described: _Document = {
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "description": who_may(endpoint),
        "tags": [tag_of(endpoint)],
        "responses": _linked(endpoint, _successes(endpoint) | _refusals(endpoint)),
    }
    if parameters := [*_path_parameters(endpoint), *_other_parameters(endpoint)]:
        described["parameters"] = parameters
    if endpoint.body is not None:
        described["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {JSON: _content(endpoint.body)},
        }
    return described


def who_may(endpoint: Endpoint) -> str:
    """The role that is needed, as a sentence."""
    if endpoint.role is None:
        return "Anybody may ask."
    also = ", or worker" if endpoint.workers_too else ""
    return f"Needs the role {endpoint.role.value}{also}."


def tag_of(endpoint: Endpoint) -> str:
    """What an endpoint belongs to: whoever it is for, or what it is about."""
    place = endpoint.path.removeprefix("/v1/").strip("/").split("/")
    if not endpoint.is_forwarded and "{group}" in endpoint.path:
        return "members"
    if "alarms" in place:
        return "alarms"
    if "tasks" in place or "checks" in place:
        return "tasks"
    return place[0] if endpoint.path.startswith("/v1/") else "manager"


def _path_parameters(endpoint: Endpoint) -> list[_Document]:
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in PATH_NAMES.items()
        if f"{{{name}}}" in endpoint.path
    ]


def _other_parameters(endpoint: Endpoint) -> list[_Document]:
    if endpoint.asks is None:
        return []
    schema = msgspec.json.schema(endpoint.asks)["$defs"][endpoint.asks.__name__]
    return [
        {
            "name": each.name,
            "in": "header" if each.is_header else "query",
            "required": each.is_required,
            "schema": _not_null(schema["properties"][each.name]),
        }
        for each in parameters_of(endpoint.asks)
    ]


def _not_null(schema: _Document) -> _Document:
    """What is left out of a query string is not there, rather than null."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and value is not None}
    return rest | kinds[0] if len(kinds) == 1 else schema


def _linked(endpoint: Endpoint, responses: _Document) -> _Document:
    for status, response in responses.items():
        if links := LINKS.get((endpoint.operation, int(status))):
            response["links"] = links
    return responses


def _successes(endpoint: Endpoint) -> _Document:
    return {str(status): _success(endpoint, status) for status in endpoint.success}


def _success(endpoint: Endpoint, status: int) -> _Document:
    content = {kind: {"schema": {"type": "string"}} for kind in endpoint.media}
    if JSON in endpoint.media:
        content[JSON] = _content(endpoint.response) if endpoint.response else {"schema": {"type": "object"}}
    described: _Document = {"description": HTTPStatus(status).phrase}
    if status != NOT_MODIFIED:
        described["content"] = content
    if sent := [*endpoint.sends, *(["Location"] if status == CREATED else [])]:
        described["headers"] = {name: HEADERS[name] for name in sent}
    return described


def _content(kind: type[msgspec.Struct]) -> _Document:
    content: _Document = {"schema": {"$ref": REF.format(name=kind.__name__)}}
    return content | ({"example": EXAMPLES[kind]} if kind in EXAMPLES else {})


def _refusals(endpoint: Endpoint) -> _Document:
    codes = endpoint.possible_errors
    by_status = {code.status: [each for each in codes if each.status == code.status] for code in codes}
    return {str(status): _refusal(endpoint, found) for status, found in sorted(by_status.items())}


def _refusal(endpoint: Endpoint, codes: Sequence[ErrorCode]) -> _Document:
    names = [code.name for code in codes]
    one_of_them = {"properties": {"error": {"enum": names}}, "required": [*endpoint.error_fields]}
    schema = {"allOf": [{"$ref": REF.format(name=ErrorResponse.__name__)}, one_of_them]}
    examples = {code.name: {"value": example_of(code, endpoint.error_fields)} for code in codes}
    described: _Document = {
        "description": "; ".join(f"`{code.name}`: {MEANINGS[code]}" for code in codes),
        "content": {JSON: {"schema": schema, "examples": examples}},
    }
    if codes[0].status == ErrorCode.COORDINATOR_NOT_AVAILABLE.status:
        wait = {"description": "Seconds.", "schema": {"type": "string", "const": str(RETRY_AFTER_S)}}
        described["headers"] = {"Retry-After": wait}
    return described
