"""Keeping up with the tokens in the database: what is made or revoked counts everywhere within seconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import structlog

from manager.background.supervision import Loop
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from manager.access.authorizer import Authorizer
    from manager.access.tokens import AccessToken
    from manager.storage.token_table import TokenTable

log = structlog.get_logger(__name__)

REFRESH_S: Final = 1.0
STALE_S: Final = 60.0
"""How long tokens count that cannot be read again: a database takes less to fail over."""


def changes_since(
    known: Mapping[str, AccessToken] | None, tokens: Iterable[AccessToken]
) -> Iterator[tuple[str, AccessToken]]:
    """What has been done to tokens since `known` were all, for the audit log; nothing at the first look."""
    for token in tokens if known is not None else ():
        before = (known or {}).get(token.token_id)
        if before is None:
            yield "createToken", token
        if token.revoked_at_ms is not None and (before is None or before.revoked_at_ms is None):
            yield "revokeToken", token


def of_unknown_role(
    known: Mapping[str, AccessToken] | None, tokens: Iterable[AccessToken]
) -> Iterator[AccessToken]:
    """Tokens whose role this version does not know, and has not told of before."""
    for token in tokens:
        before = (known or {}).get(token.token_id)
        if not isinstance(token.role, Role) and (before is None or before.role != token.role):
            yield token


class TokenRefresh:
    """Reads all tokens once a second, so that no request waits for the database; a context manager.

    While the database cannot be read, the tokens that are known go on to count, for `STALE_S` seconds: one
    that was revoked meanwhile would be let in. After that nobody is, until they have been read again.
    """

    def __init__(self, table: TokenTable, access: Authorizer) -> None:
        self._table = table
        self._access = access
        self._known: dict[str, AccessToken] | None = None
        self._reading: Loop | None = None
        self._stale: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        """Read them for the first time.

        Raises:
            StorageError: they cannot be read, so nobody could be let in.
        """
        await self._read_again()
        self._reading = Loop(
            "reading tokens",
            self._read_again,
            REFRESH_S,
            "tokens cannot be read; those known go on to count for a while",
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading them."""
        if self._reading is not None:
            await self._reading.stop()
        if self._stale is not None:
            self._stale.cancel()

    async def read(self) -> None:
        """Let the authorizer know the tokens as they are now; raises `StorageError`."""
        tokens = await self._table.all()
        self._access.learn(tokens)
        for operation, token in changes_since(self._known, tokens):
            log.info(
                "audit",
                who="the command line",
                operation=operation,
                whose=token.owner,
                role=token.role_name,
                groups=list(token.groups),
            )
        for token in of_unknown_role(self._known, tokens):
            log.warning("a token opens nothing: its role is unknown", whose=token.owner, role=token.role_name)
        self._known = {token.token_id: token for token in tokens}

    async def _read_again(self) -> None:
        """What was read counts for `STALE_S` seconds; a read that does not come to its end counts as none."""
        await self.read()
        if self._stale is not None:
            self._stale.cancel()
        self._stale = asyncio.get_running_loop().call_later(STALE_S, self._close)

    def _close(self) -> None:
        log.error("nobody is let in: tokens could not be read for too long", for_s=STALE_S)
        self._access.close()
