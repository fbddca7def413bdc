"""Reading query strings and headers as Structs, so that what reads them also describes them.

A field is a parameter of the query string, in `snake_case`; one whose name outside has capitals is a header.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from manager.http.front.reading import plainly
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import MAX_INT
from protocol.names import LEGAL, is_legal_name

if TYPE_CHECKING:
    from multidict import MultiMapping

    from manager.http.front.reading import HttpRequest

T = TypeVar("T", bound=msgspec.Struct)

GROUP = "group"
"""A parameter called so names one; what is wrong with it has a code of its own."""

_DIGITS = re.compile(r"[0-9]{1,16}")


class Parameter(NamedTuple):
    """One parameter by its name outside; `bounds` are those of a whole number, None for text."""

    name: str
    is_required: bool
    bounds: tuple[int, int] | None = None

    @property
    def is_header(self) -> bool:
        """Whether it is a header's name."""
        return not self.name.islower()


@cache
def parameters_of(kind: type[msgspec.Struct]) -> tuple[Parameter, ...]:
    """The fields of a Struct as parameters; each is text or a whole number."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - the endpoints say so
    return tuple(Parameter(each.encode_name, each.required, _bounds(each.type)) for each in described.fields)


def _bounds(kind: inspect.Type) -> tuple[int, int] | None:
    if isinstance(kind, inspect.Metadata):
        return _bounds(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_bounds, kind.types)), None)
    if isinstance(kind, inspect.IntType):
        return kind.ge or 0, kind.le or MAX_INT
    return None


def read_parameters(request: HttpRequest, kind: type[T]) -> T:
    """What the fields of `kind` name, as a `kind`, and nothing else.

    A parameter counts as it is said first; a header that comes more than once is one list (RFC 9110 §5.3).

    Raises:
        RefusedError: INVALID_REQUEST that names the parameter, INVALID_GROUP_ID for a `group` that is none.
    """
    values: dict[str, str | int] = {}
    for each in parameters_of(kind):
        given: MultiMapping[str] = request.headers if each.is_header else request.query
        if found := given.getall(each.name, []):
            values[each.name] = _read(each, ", ".join(found) if each.is_header else found[0])
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        lacks_group = Parameter(GROUP, is_required=True) in parameters_of(kind) and GROUP not in values
        code = ErrorCode.INVALID_GROUP_ID if lacks_group else ErrorCode.INVALID_REQUEST
        raise RefusedError(code, plainly(error)) from None


def _read(parameter: Parameter, text: str) -> str | int:
    name, _, bounds = parameter
    if name == GROUP and not is_legal_name(text):
        raise RefusedError(ErrorCode.INVALID_GROUP_ID, f"group: expected a group id, {LEGAL}")
    if bounds is None:
        return text
    at_least, at_most = bounds
    if not _DIGITS.fullmatch(text) or not at_least <= int(text) <= at_most:
        message = f"{name}: expected a whole number from {at_least} to {at_most}"
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    return int(text)
