"""Passwords and tokens, taken out of text that leaves the process: logs, and the causes of failures.

The last line of defence: whoever writes a message leaves secrets out of it. But messages of libraries and of
tasks' own code are written by others, and may quote a URL or an option.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"

_IN_URL = re.compile(r"(://[^/\s:@\"']*:)[^\s\"']+@")
_WORDS = r"password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|account[_-]?key|credential"
_NAMED = re.compile(
    rf"""(?ix)
    ( [\w.-]* (?:{_WORDS}) [\w.-]* ["']? \s*[=:]\s* )  # the name of an option, and what separates it
    (?! \d+ (?:[^\w.-] | $) )                         # not a fencing token, which is a number
    ( "[^"]*" | '[^']*' | [^\s,;&"')\]}}]+ )
    """
)
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_SECRET_NAME = re.compile(rf"(?i){_WORDS}")


def scrub(text: str) -> str:
    """`text` without what looks like a password in a URL, a secret option or a credential of a header."""
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1 {HIDDEN}", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


def scrub_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a log line, whatever they hold; one that is called as a secret shows no text."""
    return {
        name: HIDDEN if isinstance(value, str) and _SECRET_NAME.search(name) else scrub_value(value)
        for name, value in fields.items()
    }


def scrub_value(value: Any) -> Any:
    """A value as it may be logged; what is neither a number nor a collection becomes text."""
    match value:
        case None | bool() | int() | float():
            return value
        case dict():
            return scrub_fields({str(name): each for name, each in value.items()})
        case list() | tuple() | set() | frozenset():
            return [scrub_value(each) for each in value]
        case _:
            return scrub(str(value))
