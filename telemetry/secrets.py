"""Passwords and tokens, taken out of text that leaves the process: logs, and the causes of failures.

The last line of defence: whoever writes a message leaves secrets out of it. But messages of libraries and of
tasks' own code are written by others, and may quote a URL or an option.
"""

from __future__ import annotations

import json
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = "***"
MOST_READ: Final = 100_000
"""Characters of others' text that are read: regular expressions over megabytes keep all threads waiting."""
CANNOT_BE_SHOWN: Final = "it cannot be shown"

_IN_URL = re.compile(r"(://[^/\s:@\"']{0,256}:)[^\s\"']{1,1024}@")
_WORDS = r"password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|account[_-]?key|credential"
_NAMED = re.compile(
    rf"""(?ix)
    ( (?:{_WORDS}) [\w.-]{{0,64}} ["']? \s{{0,8}}[=:]\s{{0,8}} )  # the end of a name, and what separates it
    (?! \d+ (?:[^\w.-] | $) )                         # not a fencing token, which is a number
    ( "[^"]*(?:"|\Z) | '[^']*(?:'|\Z) | [^\s,;&"')\]}}]+ )  # the text may have been cut before the quote
    """
)
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_HALF = re.compile(r"""(?i)(?: ://[^/\s:@"']{0,256}:[^\s"'@]* | \b(?:bearer|basic)\s+\S* )\Z""", re.VERBOSE)
"""What a cut leaves of a password in a URL, before its `@`, or of a credential, and looks like none."""
_LONGEST = 1_300
"""Characters of what is looked for there."""
_SECRET_NAME = re.compile(rf"(?i){_WORDS}")
_ONE_WORD = re.compile(r"[^\s=:]*")
"""What nothing above can match: each of them has something before the secret, and one of these between."""


class KnownSecrets:
    """Values that are secrets for certain, hidden wherever they turn up; for any thread.

    A short one is hidden only where it stands alone: `no` must not be taken out of `know`.
    """

    def __init__(self) -> None:
        self._forms: frozenset[str] = frozenset()
        self._new: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = threading.Lock()

    def learn(self, value: str) -> None:
        """From now on `value` is a secret, also as it is written in URLs, JSON and traces."""
        with self._lock:
            self._new.update(form for form in _forms_of(value) if form.strip() and form not in self._forms)

    def hide(self, text: str) -> str:
        """`text` without any of them."""
        pattern = self._of_all()
        return text if pattern is None else pattern.sub(HIDDEN, text)

    def _of_all(self) -> re.Pattern[str] | None:
        """Made when it is needed: it has all there are, and many may be learned one after the other."""
        if self._new:
            with self._lock:
                forms = self._forms | self._new
                longest_first = sorted(forms, key=lambda form: (-len(form), form))
                self._pattern = re.compile("|".join(map(_anywhere, longest_first)))
                self._forms, self._new = forms, set()
        return self._pattern

    def hide_cut(self, text: str) -> str:
        """The beginning of a longer text without any of them, nor the beginning of one at its end."""
        told = self.hide(text)
        begins = [_half(told, form) for form in self._forms]
        return told[: min(begins, default=len(told))]


SECRETS = KnownSecrets()
"""Of this process: it has one log."""

_SHORT = 4
_LINE = 8


_PASSWORD = re.compile(r"://[^/\s:@]*:(.+)@")


def _forms_of(value: str) -> Iterator[str]:
    """The value, in other spellings, and line by line, as traces have it; of a URL, also its password."""
    lines = (line for line in value.splitlines() if len(line) >= _LINE)
    for text in (value, *lines, *_PASSWORD.findall(value)):
        yield from (text, unquote(text), quote(text), quote(text, safe=""))
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])


def _half(text: str, form: str) -> int:
    """Where a part of `form` begins that `text` ends with; at its end if there is none."""
    start = text.find(form[0], max(len(text) - len(form) + 1, 0))
    while start >= 0 and not form.startswith(text[start:]):
        start = text.find(form[0], start + 1)
    return len(text) if start < 0 else start


def _anywhere(form: str) -> str:
    text = re.escape(form)
    return text if len(form) >= _SHORT else rf"(?<!\w){text}(?!\w)"


def scrub(text: str, at_most: int | None = None) -> str:
    """`text` without known secrets, nor what looks like a password in a URL or option, or a credential.

    It is cut to `at_most` characters once the known ones are out of it: half of one would not be known.
    """
    text = SECRETS.hide(text)
    if at_most is not None and len(text) > at_most:
        text = _cut(text, at_most)
    if _ONE_WORD.fullmatch(text):
        return text
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1 {HIDDEN}", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)[:at_most]


def beginning(text: str, most: int = MOST_READ) -> str:
    """A text that may be huge, up to `most` characters; half of a secret at its end is left out."""
    return text if len(text) <= most else _cut(SECRETS.hide_cut(text[:most]), most)


def both_ends(text: str) -> str:
    """Of a text that may be huge what it begins with, and the lines that it ends with: `MOST_READ` in all.

    A trace says in the end what was raised.
    """
    if len(text) <= MOST_READ:
        return text
    half = MOST_READ // 2
    return "\n  …\n".join((beginning(text, half), text[-half:].partition("\n")[2]))


def _cut(text: str, most: int) -> str:
    """Its beginning, without half of what only looks like a secret as a whole."""
    at = max(most - _LONGEST, 0)
    return text[:at] + _HALF.sub("", text[at:most])


def shown(value: object) -> str:
    """`str(value)`, whose code may be somebody else's: exactly a text, whatever it raises."""
    try:
        return str.__str__(str(value))
    except BaseException:  # noqa: BLE001 - as `telemetry.foreign_errors.FAILURES`
        return CANNOT_BE_SHOWN


def scrub_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a log line, whatever they hold; one that is called as a secret shows no text."""
    return {
        name: HIDDEN if isinstance(value, str) and _is_secret(name) else scrub_value(value)
        for name, value in fields.items()
    }


@lru_cache(maxsize=1000)
def _is_secret(name: str) -> bool:
    """Fields have the same few names again and again."""
    return _SECRET_NAME.search(name) is not None


def scrub_value(value: Any) -> Any:
    """A value as it may be logged; what is neither a number nor a collection becomes text."""
    match value:
        case str():
            return scrub(both_ends(value))
        case None | bool() | int() | float():
            return value
        case dict():
            return scrub_fields({str(name): each for name, each in value.items()})
        case list() | tuple() | set() | frozenset():
            return [scrub_value(each) for each in value]
        case _:
            return scrub(both_ends(shown(value)))
