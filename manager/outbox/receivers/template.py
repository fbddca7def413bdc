"""Makes text of events, by Jinja2 in its sandbox; a user's own template is tried before it is relied upon.

The first line of what a template gives is the headline: the subject of a mail, the summary of an incident.
A template that fails on an event all the same is replaced by the built-in one for it: an alarm matters more
than its looks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from jinja2 import PackageLoader, StrictUndefined, TemplateSyntaxError
from jinja2 import Template as JinjaTemplate
from jinja2.sandbox import ImmutableSandboxedEnvironment

from manager.outbox.receivers.markup import MARKUPS, Markup
from manager.outbox.receivers.samples import template_trials
from manager.outbox.receivers.view import one_line, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.messages.events import Event

log = structlog.get_logger(__name__)

MAX_BYTES: Final = 100_000
LONGEST_HEADLINE: Final = 250
_SOURCE: Final = "<template>"
"""What Jinja2 calls a template without a file, in traces."""


class TemplateError(Exception):
    """A template is of no use; the text is one line that names the template's line, without its path."""


class Message(NamedTuple):
    """What one system shows of one event: both in its markup, the headline one line."""

    headline: str
    text: str


class Template:
    """Of one receiver.

    Args:
        markup: how its system writes.
        own: the user's, None for the built-in one.
    """

    def __init__(self, markup: Markup, own: JinjaTemplate | None = None) -> None:
        self._markup = markup
        self._own = own
        self._built_in = _environment(markup).get_template("alarm.txt")

    def render(self, event: Event, console_url: str | None) -> Message:
        """What is told of `event`; of one that is no alarm, that alarms may have been missed."""
        if event.alarm is None:
            return _gap(event)
        view = view_of(event, event.alarm, console_url)
        return self._message(self._text(view), view)

    def try_out(self, console_url: str | None) -> None:
        """Raises whatever rendering every kind of event does."""
        for event in template_trials():
            if self._own is not None and event.alarm is not None:
                text = self._own.render(view_of(event, event.alarm, console_url))
                if not text.strip():
                    raise ValueError("gives an empty text")

    def _text(self, view: dict[str, Any]) -> str:
        if self._own is not None:
            try:
                return self._own.render(view)
            except Exception as error:  # noqa: BLE001 - whatever a user's template raises
                log.warning("template failed; the built-in one is used", why=_why(error))
        return self._built_in.render(view)

    def _message(self, text: str, view: dict[str, Any]) -> Message:
        headline, _, rest = text.strip().partition("\n")
        headline = one_line(headline) or f"{view['status']}: {view['rule']}"
        return Message(cut(headline, LONGEST_HEADLINE), cut(rest.strip(), self._markup.limit))


@cache
def built_in_template(kind: str) -> Template:
    """The one that comes with sparkherd, in the markup of a kind of receivers."""
    return Template(MARKUPS[kind])


def own_template(kind: str, path: Path) -> Template:
    """The one in a file, tried with notices of every kind.

    Raises:
        TemplateError: it cannot be read, parsed or rendered.
    """
    try:
        own = _environment(MARKUPS[kind]).from_string(_source(path))
        template = Template(MARKUPS[kind], own)
        template.try_out("https://console.example")
        template.try_out(None)
    except TemplateError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's template raises
        raise TemplateError(_why(error)) from None
    return template


def _source(path: Path) -> str:
    try:
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TemplateError(f"cannot be read: {error.strerror}") from None
    if len(source) > MAX_BYTES:
        raise TemplateError(f"has more than {MAX_BYTES} bytes")
    return source.decode()


@cache
def _html() -> JinjaTemplate:
    return _environment(MARKUPS["html"]).get_template("alarm.html")


def render_html(event: Event, console_url: str | None) -> str | None:
    """The built-in message as a page for mail; None for what is no alarm."""
    if event.alarm is None:
        return None
    return _html().render(view_of(event, event.alarm, console_url))


def cut(text: str, at_most: int) -> str:
    """The beginning of a text that is too long for a system, which would refuse all of it."""
    return text if len(text) <= at_most else text[: at_most - 1] + "\u2026"


class _Escaped(str):
    """A text that is written as its system wants it already."""

    __slots__ = ()


@cache
def _environment(markup: Markup) -> ImmutableSandboxedEnvironment:
    """Names that are not there are errors; what is put in is escaped by `finalize`, as chats are no HTML."""

    def finalize(value: object) -> str:
        return value if isinstance(value, _Escaped) else markup.escape(str(value))

    def bold(text: str) -> str:
        return _Escaped(f"{markup.bold}{markup.escape(str(text).strip())}{markup.bold}")

    def link(text: str, url: str) -> str:
        return _Escaped(markup.link.format(text=markup.escape(str(text)), url=markup.escape(str(url))))

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=PackageLoader("manager.outbox.receivers"),
    )
    environment.globals |= {"bold": bold, "link": link}
    return environment


def _gap(event: Event) -> Message:
    """Of `events.pruned`."""
    first = (event.after or 0) + 1
    return Message(
        "Alarms may have been missed",
        f"Events {first} to {event.id} were not kept long enough to be told; alarms may be among them. "
        "--event-retention-ms and --event-retention-count say how long they are.",
    )


def _why(error: Exception) -> str:
    """What is wrong with a template, and in which line of it."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else _line_of(error)
    told = one_line(str(error)) or type(error).__name__
    return told if line is None else f"line {line}: {told}"


def _line_of(error: BaseException) -> int | None:
    """The last line of the template that the error came through; Jinja2 puts it into the trace."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
