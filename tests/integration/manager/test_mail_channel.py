"""Mail to a real server on a real socket: TLS, login, refusals, silence, and what becomes of each."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trustme

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers import mail, smtp
from manager.outbox.receivers.channel import MailChannel, Taken
from manager.outbox.receivers.file import DeclaredReceiver
from manager.outbox.receivers.samples import sample_events
from manager.outbox.receivers.sections import EmailReceiver, SmtpServer
from manager.outbox.receivers.smtp import SmtpPoster
from manager.outbox.receivers.template import built_in_template
from tests.fakes.smtp_server import CUT, DRIP, HANG, SmtpServerDouble

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVENT = sample_events()[0]
TO = ("a@example.com", "b@example.com", "c@example.com")
AUTHORITY = trustme.CA()


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    return context


def client_context(*, trusts: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if trusts:
        AUTHORITY.configure_trust(context)
    return context


@pytest.fixture
async def server() -> AsyncIterator[SmtpServerDouble]:
    opened = SmtpServerDouble()
    await opened.open()
    yield opened
    await opened.close()


def channel(server: SmtpServerDouble, *, trusts: bool = True, **settings: Any) -> MailChannel:
    chosen = {
        "host": "localhost",
        "port": server.port,
        "sender": "herd@example.com",
        "tls": "none",
        **settings,
    }
    section = EmailReceiver(kind="email", to=TO)
    receiver = DeclaredReceiver("ops", section, built_in_template("email"))
    poster = SmtpPoster(SmtpServer(**chosen), client_context(trusts=trusts))
    return MailChannel(receiver, section, "herd@example.com", "https://herd.example", poster)


async def sent(server: SmtpServerDouble, **settings: Any) -> Taken | Refusal:
    way = channel(server, **settings)
    try:
        return await way.send(EVENT)
    finally:
        way.close()


async def test_a_mail_says_what_happened_to_all_as_text_and_as_html(server: SmtpServerDouble) -> None:
    """From whom, to whom, with an id by which a repeat can be told."""
    assert await sent(server) == Taken()
    (mail,) = server.mails
    assert (mail.sender, mail.to) == ("herd@example.com", TO)
    message = mail.message
    assert message["Subject"] == "FIRING (critical): lag in shop, task orders"
    assert message["To"] == ", ".join(TO)
    assert message["Message-ID"] == "<sparkherd.1.60000.ops@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"].datetime.timestamp() == 60
    text, html = (message.get_body([kind]) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    assert "Value 123, threshold 60" in text.get_content()
    assert "&lt;&amp;&gt;" in html.get_content()


@pytest.mark.parametrize("times", [1, 600])
async def test_a_mail_is_ascii_whatever_is_in_it(
    server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Who has not asked for 8BITMIME may send nothing else (RFC 6152); it is read as it was written."""
    monkeypatch.setattr(mail, "render_html", lambda *_: "<p>\u65e5\u672c</p>")
    assert EVENT.alarm is not None
    causes = ("Überlauf: \u65e5\u672c\u8a9e \U0001f525 " + "ä" * times,)
    subjects = tuple(msgspec.structs.replace(each, causes=causes) for each in EVENT.alarm.subjects)
    notice = msgspec.structs.replace(EVENT.alarm, rule="Rückstand", subjects=subjects)
    way = channel(server)
    assert await way.send(msgspec.structs.replace(EVENT, alarm=notice)) == Taken()
    way.close()
    (taken,) = server.mails
    assert taken.raw.isascii()
    assert max(len(line) for line in taken.raw.splitlines()) <= 998
    text, html = (taken.message.get_body([kind]) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    assert "Überlauf: \u65e5\u672c\u8a9e \U0001f525 ä" in text.get_content()
    assert html.get_content().strip() == "<p>\u65e5\u672c</p>"
    assert "Rückstand" in taken.message["Subject"]


async def test_the_same_event_is_the_same_mail(server: SmtpServerDouble) -> None:
    """After a crash it comes again under the same id, and a mailbox may leave it out."""
    await sent(server)
    await sent(server)
    first, second = server.mails
    assert first.message["Message-ID"] == second.message["Message-ID"]


@pytest.mark.parametrize(
    "evil", ["\r\nBcc: evil@example.com", "\nX: y", "\u2028X: y", "\x00\x1b[2J", "\x85a"]
)
async def test_no_text_of_an_alarm_becomes_a_header(server: SmtpServerDouble, evil: str) -> None:
    """Names of rules and groups stand in the subject, causes in the body."""
    assert EVENT.alarm is not None
    subjects = tuple(
        msgspec.structs.replace(each, causes=(evil,), task=evil) for each in EVENT.alarm.subjects
    )
    notice = msgspec.structs.replace(EVENT.alarm, rule=f"lag{evil}", subjects=subjects)
    way = channel(server)
    assert await way.send(msgspec.structs.replace(EVENT, alarm=notice, group=f"g{evil}")) == Taken()
    way.close()
    (mail,) = server.mails
    assert mail.to == TO
    names = {"From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"}
    assert set(mail.message.keys()) == names


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_it_logs_in_over_tls_only(tls: str) -> None:
    """Before, or as, the connection begins; the certificate is checked by name."""
    server = SmtpServerDouble(tls=server_context(), is_implicit=tls == "implicit")
    await server.open()
    assert await sent(server, tls=tls, user="herd", password="horse") == Taken()
    (mail,) = server.mails
    assert (mail.login, mail.was_encrypted) == ("herd:horse", True)
    untrusted = await sent(server, tls=tls, user="herd", password="horse", trusts=False)
    assert isinstance(untrusted, Refusal)
    assert "certificate" in untrusted.reason
    assert len(server.mails) == 1
    await server.close()


async def test_a_server_without_starttls_gets_neither_mail_nor_password() -> None:
    """Whoever stands in between may have taken it out of what the server offers."""
    server = SmtpServerDouble(tls=server_context(), offers_starttls=False)
    await server.open()
    refusal = await sent(server, tls="starttls", user="herd", password="horse")
    assert refusal == Refusal("STARTTLS extension not supported by server.")
    assert not [line for line in server.said if line.startswith(("AUTH", "MAIL"))]
    await server.close()


async def test_a_login_that_is_refused_is_told_without_the_password() -> None:
    """And tried again: somebody may put it right."""
    server = SmtpServerDouble(tls=server_context(), always={"AUTH": "535 no, not horse"})
    await server.open()
    refusal = await sent(server, tls="starttls", user="herd", password="horse")
    assert refusal == Refusal("the mail server refuses the login: 535")
    await server.close()


async def test_a_recipient_that_is_refused_for_good_does_not_keep_the_others_from_it(
    server: SmtpServerDouble,
) -> None:
    """It is said who, and the mail is not tried again."""
    server.always["RCPT:b@example.com"] = "550 no such person"
    assert await sent(server) == Taken("b@example.com: 550 no such person")
    assert server.mails[0].to == ("a@example.com", "c@example.com")


async def test_a_recipient_that_is_refused_for_now_is_tried_again_alone(server: SmtpServerDouble) -> None:
    """The others have got the mail; whoever is refused for good stays left out."""
    server.answers["RCPT:a@example.com"] = deque(["450 greylisted", "450 greylisted"])
    server.always["RCPT:b@example.com"] = "550 no such person"
    way = channel(server)
    assert await way.send(EVENT) == Refusal("a@example.com: 450 greylisted")
    assert await way.send(EVENT) == Refusal("a@example.com: 450 greylisted")
    assert await way.send(EVENT) == Taken("b@example.com: 550 no such person")
    later = msgspec.structs.replace(EVENT, id=2)
    assert await way.send(later) == Taken("b@example.com: 550 no such person")
    way.close()
    assert [mail.to for mail in server.mails] == [("c@example.com",), ("a@example.com",), TO[::2]]


async def test_a_mail_that_nobody_may_get_is_given_up_sooner_or_later(server: SmtpServerDouble) -> None:
    """The ones after it are for the same people, but the server may have been wrong."""
    server.always["RCPT"] = "550 5.7.1 no\x07 such"
    refusal = await sent(server)
    assert isinstance(refusal, Refusal)
    assert refusal.is_final
    assert refusal.reason == f"{', '.join(TO)}: 550 5.7.1 no such"


@pytest.mark.parametrize(
    ("verb", "answer", "wanted"),
    [
        ("body", "554 spam", Refusal("554 spam", is_final=True)),
        ("body", "451 later", Refusal("451 later")),
        ("DATA", "554 no", Refusal("554 no", is_final=True)),
        ("MAIL", "550 who are you", Refusal("550 who are you")),
        ("CONNECT", "554 go away", Refusal("554 go away")),
        ("CONNECT", CUT, None),
        ("body", CUT, None),
        ("RCPT", CUT, None),
    ],
)
async def test_only_what_is_said_of_the_mail_itself_is_final(
    server: SmtpServerDouble, verb: str, answer: str, wanted: Refusal | None
) -> None:
    """All else may be mended: of the sender, of the server, of the way to it."""
    server.always[verb] = answer
    refusal = await sent(server)
    assert isinstance(refusal, Refusal)
    assert refusal == wanted or (wanted is None and not refusal.is_final and refusal.reason)


@pytest.mark.parametrize("verb", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "body"])
async def test_a_server_that_falls_silent_is_given_up(
    server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """At whichever step, after the time of one step."""
    monkeypatch.setattr(smtp, "STEP_S", 0.2)
    server.always[verb] = HANG
    refusal = await sent(server)
    assert isinstance(refusal, Refusal)
    assert not refusal.is_final
    assert not server.mails


async def test_what_was_taken_stays_taken_whatever_is_said_to_a_quit(
    server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be sent again, for ever."""
    monkeypatch.setattr(smtp, "STEP_S", 0.2)
    for answer in ("500 what", CUT, HANG):
        server.always["QUIT"] = answer
        assert await sent(server) == Taken()
    monkeypatch.setattr(smtp, "STEP_S", 60.0)
    monkeypatch.setattr(smtp, "WHOLE_S", 1.0)
    assert await sent(server) == Taken()
    assert len(server.mails) == 4


async def test_a_server_that_drips_is_given_up_as_well(
    server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never silent for long, and never done; the thread comes back, and the next mail is tried."""
    monkeypatch.setattr(smtp, "WHOLE_S", 0.5)
    server.answers["EHLO"] = deque([DRIP])
    way = channel(server)
    refusal = await way.send(EVENT)
    assert refusal == Refusal("the mail was not taken within 0.5 s")
    monkeypatch.setattr(smtp, "WHOLE_S", 30.0)
    assert await way.send(EVENT) == Taken()
    way.close()


async def test_a_lookup_that_hangs_sends_nothing_after_the_time_limit(
    server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread cannot be ended: when the answer comes, it hangs up at once, and the next mail is tried."""
    monkeypatch.setattr(smtp, "WHOLE_S", 0.2)
    answer, asked, look_up = threading.Event(), threading.Event(), socket.getaddrinfo

    def hang(*arguments: Any, **more: Any) -> Any:
        asked.set()
        answer.wait()
        return look_up(*arguments, **more)

    way = channel(server)
    with monkeypatch.context() as hanging:
        hanging.setattr(socket, "getaddrinfo", hang)
        for _ in range(2):  # the second one waits for the thread
            assert await way.send(EVENT) == Refusal("the mail was not taken within 0.2 s")
        assert asked.is_set()
    answer.set()
    monkeypatch.setattr(smtp, "WHOLE_S", 30.0)
    assert await way.send(msgspec.structs.replace(EVENT, id=2)) == Taken()
    way.close()
    assert [mail.message["Message-ID"] for mail in server.mails] == ["<sparkherd.2.60000.ops@example.com>"]


async def test_one_that_is_cut_while_it_begins_tls_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is another object from there on; it ends all the same."""
    server = SmtpServerDouble(tls=server_context())
    await server.open()
    shaking, go_on = asyncio.Event(), threading.Event()
    loop, wrap = asyncio.get_running_loop(), ssl.SSLContext.wrap_socket

    def hang(context: ssl.SSLContext, *arguments: Any, **more: Any) -> ssl.SSLSocket:
        wrapped = wrap(context, *arguments, **more)
        loop.call_soon_threadsafe(shaking.set)
        go_on.wait()
        return wrapped

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", hang)
    way = channel(server, tls="starttls")
    sending = asyncio.ensure_future(way.send(EVENT))
    await shaking.wait()
    sending.cancel()
    await asyncio.wait([sending])
    go_on.set()
    assert isinstance(await way.send(EVENT), Taken)  # in the same thread, after the first
    assert len(server.mails) == 1
    way.close()
    await server.close()


async def test_one_that_is_held_up_holds_up_no_other(server: SmtpServerDouble) -> None:
    """Each receiver of mail has a thread of its own, and a manager that stops waits for none."""
    server.answers["CONNECT"] = deque([HANG])
    held, free = channel(server), channel(server)
    waiting = asyncio.ensure_future(held.send(EVENT))
    await server.until(lambda: bool(server.said))
    assert await free.send(EVENT) == Taken()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=30)
    assert waiting.cancelled()
    held.close()
    free.close()


async def test_a_server_that_is_not_there_is_a_refusal() -> None:
    """It says why."""
    gone = SmtpServerDouble()
    await gone.open()
    await gone.close()
    assert await sent(gone) == Refusal("Connection refused")
