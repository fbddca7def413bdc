"""What a file of alarm receivers may say: a Struct for each kind of receiver, and one for the mail server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta
from yarl import URL

from definition.reading import Constraint, Section, readable
from definition.values import blank_fault
from manager.outbox.webhooks.secret import key_of
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PORT: Final = 65535
MOST_RECIPIENTS: Final = 100
"""Of one mail; servers need not take more (RFC 5321, 4.5.3.1.8)."""
_ADDRESS: Final = re.compile(r"[!#-'*+\-./0-9=?A-Z^-~]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def url_fault(text: str) -> str | None:
    """What is wrong with an address of HTTP. Never quotes it: those of chats are secrets."""
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    is_whole = url.scheme in {"http", "https"} and url.host and not re.search(r"\s|#", text)
    return None if is_whole else "expected a URL as https://HOST[:PORT]/PATH"


def address_fault(text: str) -> str | None:
    """What is wrong with an address of mail: one, without a name, in ASCII, as servers take all of them."""
    return None if _ADDRESS.fullmatch(text) else "expected an address as NAME@DOMAIN, in ASCII"


def credential_fault(text: str) -> str | None:
    """What is wrong with a password or key: it may become a header, or a line said to a server."""
    return blank_fault(text) or (None if text.isprintable() else "has a line break or a control character")


def signing_fault(text: str) -> str | None:
    """What is wrong with a key that signs."""
    try:
        key_of(text.encode())
    except ValueError:
        return "what follows whsec_ in it is not base64"
    return credential_fault(text)


Url = Annotated[str, Constraint(url_fault)]
Address = Annotated[str, Constraint(address_fault)]
Credential = Annotated[str, Constraint(credential_fault)]
"""Only by reference; `manager.outbox.receivers.file` holds `CREDENTIALS` to that."""
SigningKey = Annotated[str, Constraint(signing_fault)]
Text = Annotated[str, Constraint(blank_fault)]
PORTS: Final = {"starttls": 587, "implicit": 465, "none": 25}
"""Of submission (RFC 6409, RFC 8314), and of what takes mail without it."""
CREDENTIALS: Final = frozenset({"password", "secret", "routing_key", "api_key"})


class SecretiveSection(Section, frozen=True, kw_only=True):
    """One that shows nothing of what is in it, wherever it may be printed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Receiver(SecretiveSection, frozen=True, kw_only=True):
    """What every receiver has.

    Attributes:
        kind: which system it is.
        fallback: it is told of other receivers that are away.
        template: the file whose text it is told, in place of the one that comes with sparkherd.
    """

    kind: str
    fallback: bool = False
    template: Text | None = None


class WebhookReceiver(SecretiveSection, frozen=True, kw_only=True):
    """Gets the event itself, signed with `secret` if there is one, as docs/events.md has it of webhooks."""

    kind: Literal["webhook"]
    url: Url
    fallback: bool = False
    secret: SigningKey | None = None

    @property
    def template(self) -> None:
        """There is none: programs read it."""
        return


class ChatReceiver(Receiver, frozen=True, kw_only=True):
    """A channel of a chat, by the URL of its incoming webhook."""

    kind: Literal["slack", "mattermost", "rocketchat", "teams", "google_chat"]
    url: Url


class PagerDutyReceiver(Receiver, frozen=True, kw_only=True):
    """A service of PagerDuty, by Events API v2."""

    kind: Literal["pagerduty"]
    routing_key: Credential
    url: Url = "https://events.pagerduty.com/v2/enqueue"


class OpsgenieReceiver(Receiver, frozen=True, kw_only=True):
    """A team of Opsgenie, by its Alert API."""

    kind: Literal["opsgenie"]
    api_key: Credential
    url: Url = "https://api.opsgenie.com/v2/alerts"


class EmailReceiver(Receiver, frozen=True, kw_only=True):
    """People, by mail."""

    kind: Literal["email"]
    to: tuple[Address, ...]

    def faults(self) -> Iterator[Problem]:
        """Somebody is to get it, once: what servers answer is told by address."""
        if not readable(self.to):
            return
        if not 1 <= len(self.to) <= MOST_RECIPIENTS:
            yield Problem("to", f"expected 1 to {MOST_RECIPIENTS} addresses")
            return
        for place, address in enumerate(self.to):
            if (first := self.to.index(address)) != place:
                yield Problem(f"to[{place}]", f"is the same address as to[{first}]")


AnyReceiver = WebhookReceiver | ChatReceiver | PagerDutyReceiver | OpsgenieReceiver | EmailReceiver
KINDS: Final[dict[str, type[AnyReceiver]]] = {
    "email": EmailReceiver,
    "slack": ChatReceiver,
    "teams": ChatReceiver,
    "mattermost": ChatReceiver,
    "rocketchat": ChatReceiver,
    "google_chat": ChatReceiver,
    "pagerduty": PagerDutyReceiver,
    "opsgenie": OpsgenieReceiver,
    "webhook": WebhookReceiver,
}


class SmtpServer(SecretiveSection, frozen=True, kw_only=True):
    """The server that mail goes through.

    Attributes:
        host: its name.
        port: 587, 465 or 25 by `tls`, if it is not given.
        tls: `starttls` (a server that does not offer it is refused), `implicit`, or `none`.
        user: whom to log in as, with `password`; without, one does not.
        sender: whom mail is from; `from` in the file.
        ca: the authority of the server's certificate (PEM); the machine's own without it.
    """

    host: Text
    sender: Address = msgspec.field(name="from")
    port: Annotated[int, Meta(ge=1, le=MAX_PORT)] | None = None
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    user: Credential | None = None
    password: Credential | None = None
    ca: Text | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it is."""
        return self.host, PORTS[self.tls] if self.port is None else self.port

    def faults(self) -> Iterator[Problem]:
        """A login is whole, and nobody on the way hears it."""
        if not readable(self.user, self.password, self.tls):
            return
        if (self.user is None) != (self.password is None):
            missing = "user" if self.user is None else "password"
            yield Problem(missing, "is required; user and password go together")
        if self.password is not None and self.tls == "none":
            yield Problem("tls", "must not be none with a password, which others would hear")


class ReceiversFile(SecretiveSection, frozen=True, kw_only=True):
    """The whole file; `receivers` by name, their kinds to be read by `KINDS`."""

    receivers: dict[str, dict[str, object]]
    smtp: SmtpServer | None = None
    console_url: Url | None = None
