"""Bearer tokens: what one is made of, and how it is known again. Rules without I/O.

Only a SHA-256 of a token is stored. A slow, salted hash as for passwords would add nothing: those make up
for secrets that can be guessed, and a token has 256 random bits, so there is no dictionary to try. Fast is
needed, because it is done at every request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final

import msgspec

from protocol.names import is_legal_name
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX: Final = "sparkherd"
"""What every token begins with, so that scanners of repositories can find one that was left there."""
SECRET_BYTES: Final = 32
ID_BYTES: Final = 6
_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")
_RANKS: Final = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is stored: everything but the token.

    `groups` are those it is for, by name or by what they begin with and a `*`; none are all. Times are in ms
    since 1970. A revoked one is kept: it shows that there were tokens, so that nothing is open again. A role
    that is text is one that this version does not know; the token opens nothing.
    """

    token_id: str
    name: str
    digest: bytes
    role: Role | str
    groups: tuple[str, ...] = ()
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None

    @property
    def owner(self) -> str:
        """Whose it is, as the log and the audit log have it."""
        return f"{self.name} ({self.token_id})"

    @property
    def role_name(self) -> str:
        """The role as it is stored; one that this version does not know stays a text."""
        return self.role.value if isinstance(self.role, Role) else self.role

    def is_live(self, now_ms: int) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)

    def covers(self, group: str) -> bool:
        """Whether it is for `group`."""
        return not self.groups or any(_matches(group, pattern) for pattern in self.groups)

    def may(self, needed: frozenset[Role]) -> bool:
        """Whether its role is one of `needed` or above one of them; an admin may do anything."""
        if not isinstance(self.role, Role):
            return False
        rank = _RANKS.get(self.role, 0)
        return self.role in needed or any(rank >= _RANKS.get(role, _RANKS[Role.ADMIN]) for role in needed)


def mint(
    random_bytes: Callable[[int], bytes],
    *,
    name: str,
    role: Role,
    groups: tuple[str, ...],
    created_at_ms: int,
    expires_at_ms: int | None = None,
) -> tuple[str, AccessToken]:
    """A new token, to be shown once, and what is stored of it; `random_bytes` must be fit for secrets."""
    token_id = random_bytes(ID_BYTES).hex()
    secret = urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode().rstrip("=")
    text = f"{PREFIX}_{token_id}_{secret}"
    token = AccessToken(
        token_id=token_id,
        name=name,
        digest=_digest(text),
        role=role,
        groups=groups,
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
    )
    return text, token


def id_of(text: str) -> str | None:
    """Which token `text` says it is; None if it has not the form of one."""
    match = _TEXT.fullmatch(text)
    return match[1] if match else None


def is_same(token: AccessToken, text: str) -> bool:
    """Whether `text` is that token; takes the same time however much of it is right."""
    return hmac.compare_digest(token.digest, _digest(text))


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a group's name, or the beginning of one with a `*` after it."""
    name = pattern.removesuffix("*")
    if is_legal_name(name) or pattern == "*":
        return None
    return f"{pattern!r} is neither a group's name nor the beginning of one and a *"


def _matches(group: str, pattern: str) -> bool:
    return group.startswith(pattern[:-1]) if pattern.endswith("*") else group == pattern


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
