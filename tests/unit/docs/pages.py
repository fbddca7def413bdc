"""The prose as tests read it: pages, their blocks of code, their links."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:(?: {4}.*)?\n)*? {4}.*\n(?:(?: {4}.*)?\n)*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A block of code; `language` is empty where it does not say."""

    page: str
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Fenced and indented ones."""
    text, name = page.read_text(), str(page.relative_to(ROOT))
    for language, body in _FENCED.findall(text):
        yield Block(name, language, body)
    for body in _INDENTED.findall(_FENCED.sub("", text)):
        yield Block(name, "", textwrap.dedent(body).strip("\n"))


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Each link to somewhere in the repository: its path, empty for the page itself, and its anchor."""
    for target in _LINK.findall(_FENCED.sub("", page.read_text())):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def headings(page: Path) -> list[str]:
    """The headings of a page, as they are written."""
    return _HEADING.findall(_FENCED.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """What can be linked to in a page."""
    return set(map(_slug, headings(page)))


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\s-]", "", heading.lower())
    return re.sub(r"\s+", "-", kept.strip())
