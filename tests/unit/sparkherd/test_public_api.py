"""The package `sparkherd`: what users may import, and that docs and examples do with it."""

from __future__ import annotations

import ast
import re
import textwrap
from types import FunctionType

import pytest

import sparkherd
from tests.unit.docs.pages import PAGES, ROOT, blocks

PAGE = (ROOT / "docs" / "python-api.md").read_text()
OURS = {path.parent.name for path in ROOT.glob("*/py.typed")}


def test_the_page_lists_what_is_exported() -> None:
    """Every public name has its line, and nothing else has one."""
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == sorted(sparkherd.__all__)


@pytest.mark.parametrize("name", sparkherd.__all__)
def test_each_name_can_be_imported_and_explains_itself(name: str) -> None:
    """`from sparkherd import NAME`, and the classes and functions have a docstring."""
    found = getattr(sparkherd, name)
    assert not isinstance(found, type | FunctionType) or found.__doc__
    assert name in dir(sparkherd)


def test_what_is_not_public_is_not_there() -> None:
    """A misspelt name is an AttributeError as in any module."""
    with pytest.raises(AttributeError, match="'sparkherd' has no attribute 'Assigner'"):
        _ = sparkherd.Assigner  # type: ignore[attr-defined]


def sources() -> list[tuple[str, str]]:
    """Python that users are shown: blocks of the prose that import something, examples, our plug-in."""
    shown = [(each.page, each.text) for page in PAGES for each in blocks(page)]
    python = [(page, text) for page, text in shown if re.match(r"(#.*\n)?(from|import) ", text)]
    files = [*ROOT.glob("examples/**/*.py"), ROOT / "tests/plugins/herd-rules/herd_rules.py"]
    return python + [(str(path.relative_to(ROOT)), path.read_text()) for path in files]


@pytest.mark.parametrize(("place", "text"), sources(), ids=lambda each: each if "\n" not in each else "")
def test_docs_and_examples_import_nothing_else_of_ours(place: str, text: str) -> None:
    """Of all our packages only this one, and of it only what is public."""
    del place
    for node in ast.walk(ast.parse(textwrap.dedent(text).replace("…", ""))):
        if isinstance(node, ast.Import):
            assert not {each.name.split(".")[0] for each in node.names} & (OURS - {"sparkherd"})
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            assert node.module == "sparkherd"
            assert {each.name for each in node.names} <= set(sparkherd.__all__)


def test_the_prose_shows_how_it_is_imported() -> None:
    """The check above has something to look at."""
    assert {"docs/assignors.md", "docs/exactly-once.md"} <= {place for place, _ in sources()}
