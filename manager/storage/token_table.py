"""The tokens in the database: for the managers that read them, and the command that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, insert, select, update

from manager.access.tokens import AccessToken
from manager.storage.audit_table import add_entries
from manager.storage.schema import METADATA, Json
from protocol.errors import ErrorCode
from protocol.messages.audit import AuditEntry
from protocol.roles import Role

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from manager.storage.database import Database

COMMAND_LINE: Final = "the command line"
"""Who makes and revokes tokens, to the audit log."""

_KNOWN_ROLES: Final = {role.value: role for role in Role}

TOKENS = Table(
    "tokens",
    METADATA,
    Column("token_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("role", Text, nullable=False),
    Column("groups", Json(tuple[str, ...]), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger),
    Column("revoked_at_ms", BigInteger),
)


class TokenTable:
    """What a manager needs of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[AccessToken]:
        """Every token that was ever made; raises `StorageError`."""
        return await self._database.transact(all_tokens)


def all_tokens(connection: Connection) -> list[AccessToken]:
    """Every token that was ever made, the oldest first."""
    rows = connection.execute(select(TOKENS).order_by(TOKENS.c.created_at_ms, TOKENS.c.token_id)).mappings()
    return [AccessToken(**{**row, "role": _KNOWN_ROLES.get(row["role"], row["role"])}) for row in rows]


def add_token(connection: Connection, token: AccessToken) -> None:
    """Keep a new one, and in the audit log that it was made."""
    values = {name: getattr(token, name) for name in token.__struct_fields__}
    connection.execute(insert(TOKENS).values({**values, "role": token.role_name}))
    _write_down(connection, "createToken", token.token_id, token.created_at_ms)


def _write_down(connection: Connection, operation: str, token_id: str, at_ms: int) -> None:
    entry = AuditEntry(
        at_ms=at_ms, who=COMMAND_LINE, operation=operation, result=ErrorCode.NONE.value, token_id=token_id
    )
    add_entries(connection, [entry])


def revoke_token(connection: Connection, token_id: str, at_ms: int) -> bool:
    """End a token; returns whether there was one. One that was revoked before stays as it is."""
    known = connection.execute(select(TOKENS.c.token_id).where(TOKENS.c.token_id == token_id)).first()
    wanted = update(TOKENS).where(TOKENS.c.token_id == token_id, TOKENS.c.revoked_at_ms.is_(None))
    if connection.execute(wanted.values(revoked_at_ms=at_ms)).rowcount:
        _write_down(connection, "revokeToken", token_id, at_ms)
    return known is not None
