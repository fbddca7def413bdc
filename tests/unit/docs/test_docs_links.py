"""Every link in the prose leads somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.docs.pages import PAGES, ROOT, anchors, links

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    """Of files in the repository; other sites are not asked."""
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


def test_every_page_is_in_the_site_s_navigation() -> None:
    """Who adds a page says where it belongs."""
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents]
    assert [page for page in pages if f": {page}\n" not in navigation] == []
