"""What differs between two JSON documents, place by place, fit to be shown. Rules without I/O."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from definition.reading import path_to
from telemetry.secrets import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

ABSENT: Final = msgspec.UNSET
HIDDEN: Final = "***"
_SECRET_NAME: Final = re.compile(r"secret|password|token|access[.]?key|jaas", re.IGNORECASE)
"""Names whose values are not shown: those of Spark's own `spark.redaction.regex`, and Kafka's."""


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place, before and after; what is absent on one side is left out there."""

    path: str
    before: Any = ABSENT
    after: Any = ABSENT

    def __str__(self) -> str:
        """One line: `+` what came, `-` what went, `~` what changed."""
        if self.before is ABSENT:
            return f"+ {self.path}: {_json(self.after)}"
        if self.after is ABSENT:
            return f"- {self.path}: {_json(self.before)}"
        hidden = "  (differs in what is hidden)" if _json(self.before) == _json(self.after) else ""
        return f"~ {self.path}: {_json(self.before)} -> {_json(self.after)}{hidden}"


def differences(before: Any, after: Any, path: str = "") -> list[Difference]:
    """Where the documents differ, passwords hidden; to JSON, 1 and true are not the same."""
    return list(_walk(before, after, path, secret=False))


def _walk(before: Any, after: Any, path: str, *, secret: bool) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            hide = secret or _is_secret(key)
            yield from _walk(before.get(key, ABSENT), after.get(key, ABSENT), path_to(path, key), secret=hide)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(old, new, f"{path}[{at}]", secret=secret)
    elif _json(before) != _json(after):
        yield Difference(path, _shown(before, secret=secret), _shown(after, secret=secret))


def _shown(value: Any, *, secret: bool) -> Any:
    """`value` without passwords."""
    if isinstance(value, dict):
        return {key: _shown(item, secret=secret or _is_secret(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item, secret=secret) for item in value]
    if value is ABSENT:
        return value
    if secret:
        return HIDDEN
    return scrub(value) if isinstance(value, str) else value


def _is_secret(key: str) -> bool:
    return _SECRET_NAME.search(key) is not None


def _json(value: Any) -> str:
    return "" if value is ABSENT else msgspec.json.encode(value, order="deterministic").decode()
