"""What code, tests and docs refer to is there: sections of the contract, pages and their headings."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.docs.contract import PAGES, sections
from tests.unit.docs.pages import ROOT, headings

if TYPE_CHECKING:
    from pathlib import Path

_SECTION = r"§\d+(?:\.\d+)?"
_CHAIN = rf"({_SECTION}(?:(?:, | and | to ){_SECTION})*)(?:, ([A-Z][\w ]*))?"
REFERENCE = re.compile(rf"\b([Pp]rotocol|[Aa]rchitecture) {_CHAIN}")
OWN = re.compile(rf"(?<!protocol )(?<!architecture ){_CHAIN}")
RULE = re.compile(rf'^rule = "({_SECTION})', re.MULTILINE)
PAGE = re.compile(r"(?<![\w/])docs/([a-z-]+)\.md(?:, ([A-Z][\w ]*))?")
FORMER = re.compile(r"\b(?:PROTOCOL|DESIGN)\.md\b")
HISTORY = "CHANGELOG.md"
"""It says what was true on its day."""


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / line for line in listed.stdout.splitlines() if line != HISTORY]
    return [path for path in paths if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ""}]


TEXTS = {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in _tracked()}
SECTIONS = {page: sections(page) for page in PAGES}


def _missing(page: str, chain: str, heading: str) -> list[str]:
    """What of one reference is not there; a heading may be two, with `and` between them."""
    numbers = [number.removeprefix("§") for number in re.findall(_SECTION, chain)]
    found = SECTIONS[page]
    absent = [f"{page} §{number}" for number in numbers if number not in found]
    named = heading.strip()
    if absent or not named:
        return absent
    there = found[numbers[-1]]
    return [] if named in there or set(named.split(" and ")) <= there else [f"{page} {chain}, {named}"]


def _wrong_in(text: str) -> list[str]:
    references = REFERENCE.findall(text)
    return [
        *(each for page, *rest in references for each in _missing(page.lower(), *rest)),
        *FORMER.findall(text),
    ]


def test_sections_that_are_referred_to_are_there() -> None:
    """`protocol §5, Ownership`: the section, and under it a heading of that name."""
    assert {name: wrong for name, text in TEXTS.items() if (wrong := _wrong_in(text))} == {}


@pytest.mark.parametrize("page", PAGES)
def test_sections_that_the_contract_refers_to_itself_are_there(page: str) -> None:
    """`§5, Ownership` within the page."""
    assert [each for found in OWN.findall(PAGES[page]) for each in _missing(page, *found)] == []


def test_mutants_break_rules_of_sections_that_are_there() -> None:
    """`§4 Join phase: …`: the number counts, the words are the rule's own."""
    rules = [each for name, text in TEXTS.items() if name.endswith(".toml") for each in RULE.findall(text)]
    assert rules
    assert [each for rule in rules for each in _missing("protocol", rule, "")] == []


def test_pages_that_are_referred_to_are_there() -> None:
    """`docs/tasks.md`, and a heading of it if one follows."""
    wrong = {
        f"{name}: docs/{page}.md, {heading}"
        for name, text in TEXTS.items()
        for page, heading in PAGE.findall(text)
        if not _has(ROOT / "docs" / f"{page}.md", heading.strip())
    }
    assert wrong == set()


def _has(page: Path, heading: str) -> bool:
    return page.is_file() and (not heading or heading in headings(page))
