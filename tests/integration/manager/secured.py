"""A whole manager daemon in the test's own loop, its database's tokens, and certificates for both sides."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manager import daemon
from manager.access.tokens import mint
from manager.settings import ManagerSettings
from manager.storage.database import database_at
from manager.storage.migrate import upgrade, with_schema
from manager.storage.token_table import add_token, revoke_token

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp
    import trustme
    from sqlalchemy import Connection

    from manager.access.tokens import AccessToken
    from protocol.roles import Role


@asynccontextmanager
async def serving(url: str, **settings: Any) -> AsyncIterator[str]:
    """A manager on the database `url`; gives its own URL, or raises what the daemon does."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    chosen = {"listen": "127.0.0.1:0", "initial_rebalance_delay_ms": 0, **settings}
    running = asyncio.ensure_future(daemon.run(ManagerSettings(database=url, **chosen), started.set_result))
    both: set[asyncio.Future[Any]] = {running, started}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    try:
        yield started.result()
    finally:
        running.cancel()
        await asyncio.wait({running})


class Tokens:
    """Those in a database, made and revoked as the command line does it."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def make(self, role: Role, *groups: str, **more: Any) -> str:
        """A new one, called as its role is."""
        now_ms = time.time_ns() // 1_000_000
        text, token = mint(
            secrets.token_bytes, name=role.value, role=role, groups=groups, created_at_ms=now_ms, **more
        )
        await self._add(token)
        return text

    async def _add(self, token: AccessToken) -> None:
        def work(connection: Connection) -> None:
            upgrade(connection)
            add_token(connection, token)

        await self._work(work)

    async def revoke(self, text: str) -> None:
        """End it."""
        await self._work(lambda connection: revoke_token(connection, text.split("_")[1], 1))

    async def _work(self, work: Any) -> None:
        database = database_at(self._url)
        await with_schema(database, work)
        await database.close()


@dataclass
class Web:
    """One client without any token of its own."""

    session: aiohttp.ClientSession
    url: str
    tls: ssl.SSLContext | None = None

    async def ask(
        self, method: str, path: str, token: str | None = None, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """The status and the body of an answer; redirects are not followed."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        async with self.session.request(
            method, self.url + path, json=body, headers=given, ssl=self.tls or True, allow_redirects=False
        ) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()


@dataclass
class Certificates:
    """Files with what an authority of the test has signed."""

    authority: trustme.CA
    folder: Path

    @property
    def ca(self) -> str:
        """The authority's own certificate."""
        path = self.folder / "ca.pem"
        self.authority.cert_pem.write_to_path(path)
        return str(path)

    def issue(self, name: str, host: str = "127.0.0.1") -> tuple[str, str]:
        """A new certificate and its key, in files called `name`."""
        issued = self.authority.issue_cert(host)
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
        return str(cert), str(key)
