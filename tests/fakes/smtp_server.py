"""A small mail server on a real socket, as helpful or as unhelpful as a test says (RFC 5321, 3207, 4954)."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from email.message import EmailMessage

PATIENCE_S = 60.0
HANG = "hang"
CUT = "cut"
DRIP = "drip"


@dataclass(frozen=True)
class Mail:
    """One that was taken."""

    sender: str
    to: tuple[str, ...]
    raw: bytes
    login: str | None
    was_encrypted: bool

    @property
    def message(self) -> EmailMessage:
        return email.message_from_bytes(self.raw, policy=email.policy.default)


@dataclass
class SmtpServerDouble:
    """Answers each verb, or `RCPT:ADDRESS`, with what is in `answers`, then as a good server does.

    An answer is a line; `HANG` says nothing, `DRIP` never ends,
    `CUT` ends the connection. `body` is what DATA ends with.
    """

    tls: ssl.SSLContext | None = None
    is_implicit: bool = False
    offers_starttls: bool = True
    answers: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, str] = field(default_factory=dict)
    mails: list[Mail] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._changed = ChangeSignal()
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def open(self, port: int = 0) -> None:
        context = self.tls if self.is_implicit else None
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for talk in self._talks:
            talk.cancel()
        if self._talks:
            await asyncio.wait(self._talks)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._changed.until(holds)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(_Session(self, reader, writer).serve())
        self._talks.add(talk)
        try:
            await asyncio.wait([talk])
        finally:
            self._talks.discard(talk)
            writer.close()

    def take(self, mail: Mail) -> None:
        self.mails.append(mail)
        self._changed.notify()

    def heard(self, line: str) -> None:
        self.said.append(line)
        self._changed.notify()

    def answer(self, *verbs: str) -> str | None:
        """What the test wants to be said to one of `verbs`, the most special first."""
        for verb in verbs:
            if self.answers.get(verb):
                return self.answers[verb].popleft()
            if verb in self.always:
                return self.always[verb]
        return None


class _Session:
    """One connection."""

    def __init__(
        self, server: SmtpServerDouble, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._is_encrypted = server.is_implicit
        self._login: str | None = None
        self._sender = ""
        self._to: list[str] = []

    async def serve(self) -> None:
        try:
            self._server.heard("")
            await self._say("220 double", "CONNECT")
            while line := await self._reader.readline():
                text = line.decode().rstrip("\r\n")
                self._server.heard(text)
                if not await self._respond(text):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass

    async def _say(self, line: str, *verbs: str) -> bool:
        """Say what the test wants to be said, or `line`; whether that was `line`."""
        wanted = self._server.answer(*verbs)
        if wanted == HANG:
            await asyncio.Event().wait()
        if wanted == DRIP:
            await self._say_without_end()
        if wanted == CUT:
            raise ConnectionResetError
        self._writer.write(f"{wanted or line}\r\n".encode())
        await self._writer.drain()
        return wanted is None

    async def _say_without_end(self) -> None:
        """As fast as it is read."""
        self._writer.transport.set_write_buffer_limits(0)
        try:
            while True:
                self._writer.write(b"250-and\r\n" * 1000)
                await self._writer.drain()
        finally:
            self._writer.transport.abort()  # nobody reads what is left

    async def _respond(self, text: str) -> bool:
        verb, _, rest = text.partition(" ")
        match verb.upper():
            case "EHLO":
                await self._say("\r\n".join(self._extensions()), "EHLO")
            case "STARTTLS":
                if await self._say("220 go on", "STARTTLS") and self._server.tls is not None:
                    await self._writer.start_tls(self._server.tls)
                    self._is_encrypted = True
            case "AUTH":
                await self._authenticate(rest)
            case "MAIL":
                self._sender, self._to = rest.partition("<")[2].partition(">")[0], []
                await self._say("250 fine", "MAIL")
            case "RCPT":
                await self._recipient(rest.partition("<")[2].partition(">")[0])
            case "DATA":
                await self._data()
            case "QUIT":
                await self._say("221 bye", "QUIT")
                return False
            case _:
                await self._say("250 fine", verb.upper())
        return True

    def _extensions(self) -> list[str]:
        can_encrypt = self._server.tls is not None and self._server.offers_starttls
        lines = ["double", "8BITMIME"]
        lines += ["STARTTLS"] if can_encrypt and not self._is_encrypted else []
        lines += ["AUTH PLAIN"] if self._is_encrypted else []
        return [f"250{' ' if at == len(lines) else '-'}{line}" for at, line in enumerate(lines, 1)]

    async def _authenticate(self, rest: str) -> None:
        _, user, password = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
        if await self._say("235 welcome", "AUTH"):
            self._login = f"{user}:{password}"

    async def _recipient(self, address: str) -> None:
        if await self._say("250 fine", f"RCPT:{address}", "RCPT"):
            self._to.append(address)

    async def _data(self) -> None:
        if not await self._say("354 go on", "DATA"):
            return
        raw = (await self._reader.readuntil(b"\r\n.\r\n"))[:-3]
        if await self._say("250 taken", "body"):
            self._server.take(
                Mail(self._sender, tuple(self._to), raw, self._login, was_encrypted=self._is_encrypted)
            )
