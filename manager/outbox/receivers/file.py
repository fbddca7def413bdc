"""Reads `--alarm-receivers FILE`: the receivers. All that is wrong with it is one line with each field."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from definition.reading import path_to, read
from definition.references import find_problems, resolve, specimen
from manager.outbox.receivers.sections import CREDENTIALS, KINDS, AnyReceiver, ReceiversFile, SmtpServer
from manager.outbox.receivers.template import Template, TemplateError, built_in_template, own_template
from protocol.errors import StartupError
from protocol.messages.tasks import Problem
from protocol.names import is_legal_name
from telemetry.secrets import SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from definition.references import Reference

SETTING: Final = "--alarm-receivers"
MAX_BYTES: Final = 1024 * 1024
_SIGN: Final = re.compile(r"\b(alias|anchor|tag|handle) ['\"].*", re.DOTALL)
"""What YAML's complaints quote of a value: a password that is not quoted may begin with `*`, `&` or `!`."""


@dataclass(frozen=True, slots=True)
class DeclaredReceiver:
    """A receiver, and what it is told: its template, made for its kind."""

    name: str
    section: AnyReceiver = field(repr=False)
    template: Template = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeclaredReceivers:
    """What a file says; without one, nothing.

    Attributes:
        receivers: in the order of the file.
        smtp: what mail goes through; there if any receiver gets mail.
        console_url: where links lead to, without a slash at its end; None for messages without links.
        trust: how the certificate of `smtp` is checked.
    """

    receivers: tuple[DeclaredReceiver, ...] = ()
    smtp: SmtpServer | None = field(default=None, repr=False)
    console_url: str | None = None
    trust: ssl.SSLContext | None = field(default=None, repr=False)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """The names of those that are told of others that are away."""
        return tuple(each.name for each in self.receivers if each.section.fallback)


def read_receivers(path: str | None, environ: Mapping[str, str] = os.environ) -> DeclaredReceivers:
    """The receivers of the file at `path`; none without one. Their templates have been tried.

    Args:
        path: a YAML file; templates are found beside it.
        environ: where `${env:NAME}` is looked up.

    Raises:
        StartupError: something is wrong; each problem names its field, and none repeats a value.
    """
    if path is None:
        return DeclaredReceivers()
    reader = _Reader(Path(path), environ)
    declared = reader.read()
    # Its pattern is made by that: with many secrets it takes a while, for which a line of the log would wait.
    SECRETS.hide("")
    if reader.problems:
        told = "; ".join(": ".join(filter(None, (each.path, each.message))) for each in reader.problems)
        raise StartupError(f"{SETTING} {path}: {told}")
    return declared


class _Reader:
    """One reading of one file."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self.problems: list[Problem] = []

    def read(self) -> DeclaredReceivers:
        """What the file says; of use only if there are no problems."""
        document = self._with_secrets(self._document())
        if self.problems:
            return DeclaredReceivers()
        file, problems = read(document, ReceiversFile)
        self.problems += problems
        return DeclaredReceivers() if problems else self._declared(file)

    def _declared(self, file: ReceiversFile) -> DeclaredReceivers:
        receivers = tuple(self._receivers(file))
        if file.smtp is None and any(each.section.kind == "email" for each in receivers):
            self._problem("smtp", "is required for receivers of kind email")
        console_url = None if file.console_url is None else file.console_url.rstrip("/")
        return DeclaredReceivers(receivers, file.smtp, console_url, self._trust(file.smtp))

    def _trust(self, smtp: SmtpServer | None) -> ssl.SSLContext | None:
        """Of the mail server's authority, or the machine's own."""
        if smtp is None:
            return None
        ca = None if smtp.ca is None else str(self._path.parent / smtp.ca)
        try:
            return ssl.create_default_context(cafile=ca)
        except (OSError, ValueError) as error:
            self._problem("smtp.ca", f"cannot be used: {getattr(error, 'strerror', None) or 'not PEM'}")
            return None

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _document(self) -> Any:
        """The file's YAML as JSON has it."""
        import yaml  # noqa: PLC0415 - managers without receivers need none

        from configuration.yaml_loader import Loader  # noqa: PLC0415 - the same

        try:
            with self._path.open("rb") as file:
                text = file.read(MAX_BYTES + 1)
            if len(text) > MAX_BYTES:
                raise StartupError(f"{SETTING} {self._path}: has more than {MAX_BYTES} bytes")
            document = yaml.load(text, Loader=Loader)  # noqa: S506 - a SafeLoader
            return msgspec.to_builtins(document, str_keys=True)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line = f"line {mark.line + 1}: " if mark else ""
            why = _SIGN.sub(r"\1", error.problem or error.context or "is not YAML")
            raise StartupError(f"{SETTING} {self._path}: {line}{why}") from None
        except (OSError, ValueError, yaml.YAMLError, TypeError, RecursionError) as error:
            why = getattr(error, "strerror", None) or "is not YAML that can be read"
            raise StartupError(f"{SETTING} {self._path}: {why}") from None

    def _with_secrets(self, document: Any) -> Any:
        """The document with what its references stand for; credentials have to be references."""
        self.problems += find_problems(document, "", for_spark=False)
        self.problems += _plain_credentials(document, "")
        return document if self.problems else resolve(document, "", self._looked_up)

    def _looked_up(self, reference: Reference, path: str) -> str:
        """What a reference stands for, without white space around it; from then on no log shows it."""
        found = self._variable(reference.name) if reference.kind == "env" else self._content(reference.name)
        if not found:
            self._problem(path, f"what {reference} stands for is not there, or is empty")
            return "-"
        SECRETS.learn(found)
        return found

    def _variable(self, name: str) -> str:
        return self._environ.get(name, "").strip()

    def _content(self, name: str) -> str:
        try:
            with (self._path.parent / name).open("rb") as file:
                return file.read(MAX_BYTES).decode().strip()
        except (OSError, ValueError):
            return ""

    def _receivers(self, file: ReceiversFile) -> Iterator[DeclaredReceiver]:
        for name, content in file.receivers.items():
            path = path_to("receivers", name)
            if not is_legal_name(name):
                self._problem(path, "a name has 1 to 249 characters of [A-Za-z0-9._-]")
            elif str(content.get("kind")) not in KINDS:
                self._problem(f"{path}.kind", f"expected one of {', '.join(KINDS)}")
            else:
                yield from self._receiver(name, content, path)

    def _receiver(self, name: str, content: dict[str, object], path: str) -> Iterator[DeclaredReceiver]:
        section, problems = read(content, KINDS[str(content["kind"])], path)
        self.problems += problems
        if problems:
            return
        if (url := getattr(section, "url", None)) is not None:
            SECRETS.learn(url)
        if (template := self._template(section, path)) is not None:
            yield DeclaredReceiver(name, section, template)

    def _template(self, section: AnyReceiver, path: str) -> Template | None:
        if section.template is None:
            return built_in_template(section.kind)
        try:
            return own_template(section.kind, self._path.parent / section.template)
        except TemplateError as error:
            self._problem(f"{path}.template", str(error))
            return None


def _plain_credentials(value: object, path: str) -> Iterator[Problem]:
    """Passwords and keys that stand in the file itself, which is copied, shown and versioned."""
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        place = path_to(path, key)
        if key in CREDENTIALS and isinstance(each, str) and specimen(each) is not None:
            yield Problem(place, "must not be in this file; write ${env:NAME} or ${file:PATH}")
        yield from _plain_credentials(each, place)
