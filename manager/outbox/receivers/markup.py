"""How each system writes bold text and links, and what in a text it would take for its own signs.

Causes of alarms are what Spark and tasks' code say: whatever is in them must neither mention a whole channel
nor end a tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape as html_escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_APART: Final = "\u200b"
"""A space without width: what it parts looks the same and means nothing."""


@dataclass(frozen=True, slots=True)
class Markup:
    """One system's way of writing.

    Attributes:
        escape: a text as it has to be written to be shown as it is.
        bold: what stands before and after text in bold.
        link: with `{text}` and `{url}`.
        limit: the most characters of a message that the system takes, or shows without folding it away.
    """

    escape: Callable[[str], str]
    bold: str
    link: str
    limit: int


def plain(text: str) -> str:
    """As it is."""
    return text


def for_slack(text: str) -> str:
    """Slack's three entities, by which `<!channel>` is text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def without_mentions(text: str) -> str:
    """For Markdown of chats: `@all` tells nobody, and a URL with a text of its own is no link.

    Mattermost and Rocket.Chat take Slack's `<!channel>`, `<@USER>` and `<URL|TEXT>` as well.
    """
    return re.sub(r"@(?=\w)|\](?=\()|<(?=\S)", lambda sign: sign[0] + _APART, text)


def for_google_chat(text: str) -> str:
    """`<users/all>` and `<URL|TEXT>` have no entities there."""
    return re.sub(r"<(?=\S)", "<" + _APART, text)


_MARKDOWN: Final = Markup(without_mentions, "**", "[{text}]({url})", 4000)
_PLAIN: Final = Markup(plain, "", "{text}: {url}", 10_000)
MARKUPS: Final[dict[str, Markup]] = {
    "email": _PLAIN,
    "html": Markup(html_escape, "", "", 100_000),
    "slack": Markup(for_slack, "*", "<{url}|{text}>", 4000),
    "teams": Markup(without_mentions, "**", "[{text}]({url})", 5000),
    "mattermost": _MARKDOWN,
    "rocketchat": Markup(without_mentions, "*", "[{text}]({url})", 4000),
    "google_chat": Markup(for_google_chat, "*", "<{url}|{text}>", 3800),
    "pagerduty": _PLAIN,
    "opsgenie": _PLAIN,
    "webhook": _PLAIN,
}
"""By the kind of receiver; `html` is the other half of a mail."""
