"""Handing a mail to a server, in a thread of the receiver's own: one that is held up holds up nobody else."""

from __future__ import annotations

import asyncio
import re
import smtplib
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.view import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from email.message import EmailMessage

    from manager.outbox.receivers.sections import SmtpServer

STEP_S = 10.0
"""How long a server may be silent."""
WHOLE_S = 60.0
"""How long all of it may take: a server may say one word every nine seconds."""
READY: Final = 220
PERMANENT: Final = 500
"""From this reply on, the same would be refused again (RFC 5321, 4.2.1)."""
LONGEST_REPLY: Final = 200


class Handed(NamedTuple):
    """What became of a mail: who was refused, and how. None of `refused` is of those that got it."""

    refused: Mapping[str, Refusal]


class SmtpPoster:
    """Hands mails over, one at a time.

    Args:
        server: which one.
        context: how its certificate is checked.
    """

    def __init__(self, server: SmtpServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="smtp")
        self._talk: _Talk | None = None

    def close(self) -> None:
        """Cut what is going on."""
        if self._talk is not None:
            self._talk.cut()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def post(self, mail: EmailMessage, to: Sequence[str]) -> Handed | Refusal:
        """Hand over `mail` for `to`; a `Refusal` if nobody got it, whoever they are."""
        self._talk = talk = _Talk(self._server, self._context)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WHOLE_S):
                return await loop.run_in_executor(self._thread, talk.hand_over, mail, to)
        except TimeoutError:
            return talk.handed or Refusal(f"the mail was not taken within {WHOLE_S:g} s")
        finally:
            talk.cut()


class _Talk:
    """One connection to a server, in its thread; `cut` ends it for good, from any thread."""

    def __init__(self, server: SmtpServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._smtp: smtplib.SMTP | None = None
        self._connecting = threading.Lock()
        self._is_cut = False
        self._line: socket.socket | None = None
        self.handed: Handed | None = None

    def cut(self) -> None:
        """Whoever waits for the server waits no longer, and nothing is sent from now on.

        A thread that looks up the server's name cannot be ended: it finds that it is too late.
        """
        with self._connecting:
            self._is_cut = True
            if self._line is not None:
                with suppress(OSError):  # the server may have hung up
                    self._line.shutdown(socket.SHUT_RDWR)

    def hand_over(self, mail: EmailMessage, to: Sequence[str]) -> Handed | Refusal:
        """All steps, each with its time."""
        try:
            self.handed = self._handed(mail, to)
        except smtplib.SMTPDataError as error:
            return _refusal(error.smtp_code, error.smtp_error)
        except smtplib.SMTPAuthenticationError as error:
            return Refusal(f"the mail server refuses the login: {error.smtp_code}")
        except smtplib.SMTPResponseException as error:
            return Refusal(_refusal(error.smtp_code, error.smtp_error).reason)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            return Refusal(_reason(error))
        finally:
            self._leave()
        return self.handed

    def _handed(self, mail: EmailMessage, to: Sequence[str]) -> Handed:
        smtp = self._connected()
        if self._server.tls == "starttls":
            smtp.starttls(context=self._context)
        if self._server.user is not None and self._server.password is not None:
            smtp.login(self._server.user, self._server.password)
        try:
            refused = smtp.send_message(mail, self._server.sender, list(to))
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        return Handed({address: _refusal(*reply) for address, reply in refused.items()})

    def _connected(self) -> smtplib.SMTP:
        self._smtp = smtp = smtplib.SMTP(local_hostname=_own_name(), timeout=STEP_S)
        host, port = self._server.address
        smtp._host = host  # type: ignore[attr-defined]  # noqa: SLF001 - given to it, it would connect by itself
        smtp.sock = self._open(host, port)
        if self._server.tls == "implicit":
            smtp.sock = self._context.wrap_socket(smtp.sock, server_hostname=host)
        code, told = smtp.getreply()
        if code != READY:
            raise smtplib.SMTPConnectError(code, told)
        return smtp

    def _open(self, host: str, port: int) -> socket.socket:
        """A connection that can be cut: by a second handle of it, as TLS takes the first one away."""
        opened = socket.create_connection((host, port), STEP_S)
        with self._connecting:
            if self._is_cut:
                opened.close()
                raise ConnectionAbortedError("too late")
            self._line = opened.dup()
        return opened

    def _leave(self) -> None:
        """What is said to a QUIT changes nothing of what was taken before."""
        if self._smtp is not None and self._smtp.sock is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._smtp.quit()
            self._smtp.close()
        with self._connecting:
            if self._line is not None:
                self._line.close()
                self._line = None


def _refusal(code: int, told: bytes | str) -> Refusal:
    """What the server said."""
    text = told.decode(errors="replace") if isinstance(told, bytes) else told
    return Refusal(f"{code} {one_line(text)[:LONGEST_REPLY]}".strip(), is_final=code >= PERMANENT)


def _reason(error: Exception) -> str:
    """What went wrong on the way."""
    if isinstance(error, TimeoutError):
        return f"the mail server was silent for {STEP_S:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the mail server's certificate: {error.verify_message}"
    told = getattr(error, "strerror", None) or one_line(str(error))[:LONGEST_REPLY]
    return told or type(error).__name__


def _own_name() -> str:
    """What the server is greeted with; looking up this machine's whole name may take a minute."""
    name = socket.gethostname()
    return name if re.fullmatch(r"[A-Za-z0-9.-]{1,255}", name) else "localhost"
