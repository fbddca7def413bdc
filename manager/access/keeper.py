"""Keeping up with the tokens in the database: what is made or revoked counts everywhere within seconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import structlog

from manager.storage.base import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from manager.access.access import Access
    from manager.access.tokens import Token
    from manager.storage.tokens import TokenTable

log = structlog.get_logger(__name__)

REFRESH_S: Final = 1.0


def changes(known: Mapping[str, Token] | None, tokens: Iterable[Token]) -> Iterator[tuple[str, Token]]:
    """What has been done to tokens since `known` were all, for the audit log; nothing at the first look."""
    for token in tokens if known is not None else ():
        before = (known or {}).get(token.token_id)
        if before is None:
            yield "createToken", token
        if token.revoked_at_ms is not None and (before is None or before.revoked_at_ms is None):
            yield "revokeToken", token


class TokenKeeper:
    """Reads all tokens once a second, so that no request waits for the database; a context manager.

    While the database cannot be read, the tokens that are known go on to count.
    """

    def __init__(self, table: TokenTable, access: Access) -> None:
        self._table = table
        self._access = access
        self._reading: asyncio.Task[None] | None = None
        self._known: dict[str, Token] | None = None

    async def __aenter__(self) -> Self:
        """Read them for the first time.

        Raises:
            StorageError: they cannot be read, so nobody could be let in.
        """
        await self.read()
        self._reading = asyncio.create_task(self._read_on(), name="reading tokens")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def read(self) -> None:
        """Once; raises `StorageError`."""
        tokens = await self._table.all()
        self._access.learn(tokens)
        for operation, token in changes(self._known, tokens):
            log.info(
                "audit",
                who="the command line",
                operation=operation,
                whose=f"{token.name} ({token.token_id})",
                role=token.role.value,
                groups=list(token.groups),
            )
        self._known = {token.token_id: token for token in tokens}

    async def _read_on(self) -> None:
        failed = False
        while True:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.read()
                failed = False
            except StorageError as error:
                if not failed:
                    log.warning("tokens cannot be read; those known go on to count", why=str(error))
                failed = True
