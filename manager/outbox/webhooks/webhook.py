"""Which webhooks there are, from the settings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from yarl import URL

from manager.outbox.webhooks.secret import SETTING, Secret, read_secret
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook. `name` tells it from others in the database and the log; its path may be a secret itself."""

    name: str
    url: URL = field(repr=False)
    secret: Secret | None


def webhooks_of(urls: Sequence[str], references: Sequence[str]) -> tuple[Webhook, ...]:
    """The webhooks at `urls`, each with the secret that is at its place, or with the only one there is.

    Raises:
        StartupError: one of them cannot be used.
    """
    if len(set(urls)) < len(urls):
        raise StartupError("--webhook: the same URL is given twice")
    if len(references) not in {0, 1, len(urls)}:
        raise StartupError(
            f"{SETTING}: give one for all webhooks, or one for each in the same order; "
            f"there are {len(urls)} webhooks and {len(references)} secrets"
        )
    secrets: list[Secret | None] = [read_secret(reference) for reference in references] or [None]
    if len(secrets) < len(urls):
        secrets *= len(urls)
    return tuple(_webhook(url, secret) for url, secret in zip(urls, secrets, strict=False))


def _webhook(url: str, secret: Secret | None) -> Webhook:
    try:
        parsed = URL(url)
    except ValueError:
        parsed = URL()
    if not parsed.host:
        raise StartupError("--webhook: expected a URL as https://HOST[:PORT]/PATH")
    digest = hashlib.sha256(url.encode()).hexdigest()
    return Webhook(f"{parsed.scheme}://{parsed.host}:{parsed.port}#{digest[:12]}", parsed, secret)
