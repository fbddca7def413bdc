"""Bodies made from the request types themselves, then spoiled in a place or two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from tests.fakes.endpoints import all_endpoints
from tests.integration.manager.fuzz.front import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Text:
    """JSON text that goes into the body as it is, well-formed or not."""

    text: str


@dataclass(frozen=True)
class Pairs:
    """An object, whose keys may come more than once."""

    pairs: tuple[tuple[Any, Any], ...]


COMMON = ["null", "true", "[]", "{}", '{"a":1,"a":2}', "[" * 101 + "]" * 101, "1.5", '""', "-1"]
MALFORMED = [
    "NaN",
    "-Infinity",
    "01",
    "1.",
    "+1",
    "0x1",
    "[1,]",
    "{,}",
    "'x'",
    "",
    "[" * 100_000,
    '"\n"',
    '"\\q"',
]
NUMBERS = [
    *("1e400", "-1e400", "1e-400", "-0", "1E2", "1" + "0" * 5000, "0", "1e15"),
    *(str(n) for n in (2**31, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30)),
]
STRINGS = [
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"a\\u0000b"', '"\\ufffe"', '"\\u12"', '" "', '".."'),
    *('"a/b"', '"\\n"', '"%00"', '"ä\U0001f600"', '"' + "x" * 249 + '"', '"' + "\\u20ac" * 250 + '"'),
    *(
        '"' + "y" * 3000 + '"',
        '"' + "\\u20ac" * 3000 + '"',
        '"' + "x" * 150_000 + '"',
        '"' + "z" * 199_990 + '"',
    ),
]
NESTED = [
    *("[" * n + "]" * n for n in (90, *range(820, 1000, 6), 30_000)),
    *('{"a":' * n + "1" + "}" * n for n in (90, 900, 10_000)),
]
"""All around the depth at which one reader, at this depth of its own stack, gives up and another does not."""

NASTY = [*COMMON, *MALFORMED, *NUMBERS, *STRINGS, *NESTED]
"""Every value that some part of some program has choked on."""

nasty = st.sampled_from([Text(text) for text in NASTY])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | nasty,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)

WORDS = ("MEMBER", "INSTANCE", "TASK", "t2", "", "sparkherd", "sticky")
"""Words that mean something to the group."""

FITTING = {
    "member_id": st.sampled_from(["MEMBER", "MEMBER", "MEMBER", "", "nobody"]),
    "instance_id": st.sampled_from([None, "INSTANCE", "other"]),
    "generation_id": st.sampled_from(["GENERATION", "GENERATION", -1, 7]),
    "token": st.sampled_from(["TOKEN", "TOKEN", 0]),
    "protocol_type": st.sampled_from(["sparkherd", "sparkherd", None, "test"]),
    "definition": st.sampled_from([DEFINITION, DEFINITION | {"weight": 2}, {}]),
}
"""What mostly suits a field; MEMBER and its like are replaced by what is true when the body is sent."""


WHOLE = {
    "member_id": "MEMBER",
    "instance_id": "INSTANCE",
    "generation_id": "GENERATION",
    "token": "TOKEN",
    "task": "TASK",
    "tasks_revision": 0,
    "protocol_type": "sparkherd",
    "definition": DEFINITION,
    "cause": "NEWS",
    "reason": "NEWS",
}
"""What suits a field in a body that is right."""


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a request type, as JSON has them."""
    return _of(inspect.type_info(kind))


def _of(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911 - a table of types
    match kind:
        case inspect.StructType(fields=fields):
            return st.tuples(*(_field(each) for each in fields)).map(
                lambda found: Pairs(tuple(pair for pair in found if pair is not None))
            )
        case inspect.StrType():
            return st.sampled_from(WORDS)
        case inspect.IntType(ge=at_least):
            return st.just("GENERATION") | st.sampled_from([at_least or 0, 1, 10_000, 60_000])
        case inspect.FloatType():
            return st.floats(0, 10)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.EnumType(cls=cls):
            return st.sampled_from([member.value for member in cls])
        case inspect.UnionType(types=types):
            return st.one_of([_of(each) for each in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=3)
        case inspect.DictType(value_type=value):
            return st.dictionaries(st.sampled_from(WORDS), _token_or(value), max_size=2)
        case _:  # opaque
            return st.sampled_from([{"tasks": ["TASK"]}, {"tasks": []}, {"owned": {"TASK": 1}}]) | json_values


def _field(field: inspect.Field) -> st.SearchStrategy[tuple[str, Any] | None]:
    name = field.encode_name
    pair = FITTING.get(name, _of(field.type)).map(lambda value: (name, value))
    return pair if field.required else st.none() | pair


def _token_or(value: inspect.Type) -> st.SearchStrategy[Any]:
    return FITTING["token"] if isinstance(value, inspect.IntType) else _of(value)


def whole(kind: Any) -> Any:
    """A body of a request type with every field there, and right."""
    return _whole(inspect.type_info(kind))


def _whole(kind: inspect.Type) -> Any:  # noqa: PLR0911 - a table of types
    match kind:
        case inspect.StructType(fields=fields):
            return Pairs(tuple((each.encode_name, _whole_field(each)) for each in fields))
        case inspect.UnionType(types=types):
            return _whole(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return [_whole(item)]
        case inspect.DictType(value_type=value):
            return {"TASK": "TOKEN" if isinstance(value, inspect.IntType) else _whole(value)}
        case inspect.EnumType(cls=cls):
            return next((member.value for member in cls if member.name == "RUNNING"), next(iter(cls)).value)
        case inspect.IntType():
            return 10_000
        case inspect.BoolType():
            return False
        case inspect.StrType():
            return "sticky"
    return {"tasks": ["TASK"]}


def _whole_field(field: inspect.Field) -> Any:
    return WHOLE.get(field.encode_name) or _whole(field.type)


def each_spoiled(body: Any) -> Iterator[Any]:
    """`body` with one value replaced, by turns at each place with all that might hurt there."""
    for place in _places(body):
        yield _change(body, place, "drop", None) if place else Text("")
        for text in _harmful(_at(body, place)):
            yield _change(body, place, "replace", Text(text))


def _at(body: Any, place: tuple[int, ...]) -> Any:
    return _at(_items(body)[place[0]][1], place[1:]) if place else body


def _harmful(value: Any) -> list[str]:
    if isinstance(value, str) and value not in {"TOKEN", "GENERATION"}:
        return COMMON + STRINGS
    if isinstance(value, bool | int | float | str):
        return COMMON + NUMBERS
    return NASTY


def spoiled(body: Any, draw: st.DrawFn) -> Any:
    """`body` with one value of it replaced, left out or there twice."""
    places = list(_places(body))
    place = draw(st.sampled_from(places))
    what = draw(st.sampled_from(["replace", "replace", "drop", "double"]))
    return _change(body, place, what, draw(nasty | json_values))


def _places(body: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield at
    for number, value in enumerate(item for _, item in _items(body)):
        yield from _places(value, (*at, number))


def _items(body: Any) -> list[tuple[Any, Any]]:
    match body:
        case Pairs(pairs):
            return list(pairs)
        case dict():
            return list(body.items())
        case list():
            return list(enumerate(body))
    return []


def _change(body: Any, place: tuple[int, ...], what: str, value: Any) -> Any:
    if not place:
        return value
    at, *rest = place
    items = _items(body)
    key, old = items[at]
    if rest or what == "replace":
        items[at] = (key, _change(old, tuple(rest), what, value))
    elif what == "drop":
        del items[at]
    else:
        items.append((key, value))
    return [item for _, item in items] if isinstance(body, list) else Pairs(tuple(items))


_news = count()


def encode(body: Any, facts: dict[str, Any]) -> bytes:
    """As JSON text, facts filled in, NEWS ever new; lone surrogates become bytes that are no UTF-8."""
    return _text(body, facts | {"NEWS": f"news {next(_news)}"}).encode("utf-8", "surrogatepass")


def _text(body: Any, facts: dict[str, Any]) -> str:
    match body:
        case Text(text):
            return text
        case Pairs(pairs):
            return "{" + ",".join(f"{_text(k, facts)}:{_text(v, facts)}" for k, v in pairs) + "}"
        case dict():
            return _text(Pairs(tuple(body.items())), facts)
        case list():
            return "[" + ",".join(_text(value, facts) for value in body) + "]"
        case str() if body in facts:
            return json.dumps(facts[body])
        case _:
            return json.dumps(body, ensure_ascii=False)


def request_types() -> dict[str, type[msgspec.Struct]]:
    """Every body that some endpoint takes, by its place below a group."""
    places = {f"{each.method} {each.path}": each.body for each in all_endpoints() if each.body is not None}
    bodies = {
        place.replace("/v1/groups/{group}/", "").replace("{task}", "TASK"): body
        for place, body in places.items()
        if "{group}" in place
    }
    return bodies | {"PUT tasks/t2": bodies["PUT tasks/TASK"]}
