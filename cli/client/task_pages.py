"""A group's tasks, a page at a time: however many there are, no answer is larger, and none takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Raw, json

from cli.client.admin_client import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cli.client.admin_client import AdminClient

AT_ONCE: Final = 1000
"""As many as the manager tells in one answer."""

Document = dict[str, Raw]
"""A page as the API answers it, unread but for its names."""


def task_pages(client: AdminClient, group: str) -> Iterator[Document]:
    """All pages, the first of which says as of when the list is; raises what `AdminClient.get` does."""
    after: str | None = None
    while True:
        asked = urlencode({"limit": AT_ONCE} | ({} if after is None else {"after": after}))
        page = json.decode(client.get(f"{path_of('groups', group, 'tasks')}?{asked}", Raw), type=Document)
        yield page
        after = json.decode(page.get("next", b"null"), type=str | None)
        if after is None:
            return


def as_one(pages: Iterable[Document]) -> Document:
    """The document that the API answers without a limit."""
    first, *others = pages
    lists = [bytes(page["tasks"]).strip()[1:-1] for page in (first, *others)]
    tasks = Raw(b"[%b]" % b",".join(filter(None, lists)))
    return first | {"tasks": tasks} | ({"next": Raw(b"null")} if others else {})
