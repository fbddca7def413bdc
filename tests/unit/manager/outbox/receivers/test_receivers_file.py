from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.outbox.receivers.file import DeclaredReceivers, read_receivers
from protocol.errors import StartupError
from telemetry.secrets import scrub

if TYPE_CHECKING:
    from pathlib import Path

HOOK = "https://hooks.slack.example/services/T0/B0/very-secret-path"
WHOLE = """
console_url: https://herd.example/
smtp: {host: mail.example, from: herd@example.com, user: herd, password: "${env:MAIL}"}
receivers:
  ops: {kind: email, to: [a@example.com, b@example.com], fallback: true}
  chat: {kind: slack, url: "${file:hook}", template: own.txt}
  room: {kind: google_chat, url: "https://chat.example/v1/spaces/x"}
  pager: {kind: pagerduty, routing_key: "${env:KEY}"}
  genie: {kind: opsgenie, api_key: "${env:KEY}"}
  program: {kind: webhook, url: "http://127.0.0.1:1/x", secret: "${env:KEY}"}
"""
ENVIRON = {"MAIL": " correct-horse \n", "KEY": "battery-staple", "EMPTY": " "}


def read(folder: Path, text: str) -> DeclaredReceivers:
    (folder / "receivers.yaml").write_text(text)
    (folder / "hook").write_text(HOOK + "\n")
    (folder / "own.txt").write_text("{{ status }} {{ rule }}\n{{ link('look', console) if console }}")
    return read_receivers(str(folder / "receivers.yaml"), ENVIRON)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(StartupError) as caught:
        read(folder, text)
    return str(caught.value)


def test_a_file_may_have_every_kind_of_receiver(tmp_path: Path) -> None:
    """Secrets are looked up, in variables and in files beside it; defaults are those of the systems."""
    found = read(tmp_path, WHOLE)
    sections = {each.name: each.section for each in found.receivers}
    assert list(sections) == ["ops", "chat", "room", "pager", "genie", "program"]
    assert sections["chat"].url == HOOK  # type: ignore[union-attr]  # mail has none
    assert sections["pager"].url == "https://events.pagerduty.com/v2/enqueue"  # type: ignore[union-attr]  # the same
    assert found.smtp is not None
    assert (found.smtp.sender, found.smtp.password) == ("herd@example.com", "correct-horse")
    assert (found.console_url, found.fallbacks) == ("https://herd.example", ("ops",))


def test_without_a_file_there_are_none() -> None:
    """Whoever wants no alarms says nothing."""
    assert read_receivers(None) == DeclaredReceivers()


@pytest.mark.parametrize(
    "value", ["*correct-horse", "!correct-horse x", "!correct!horse x", "&correct-horse"]
)
def test_what_yaml_takes_for_its_own_signs_is_not_repeated(tmp_path: Path, value: str) -> None:
    """A password that nobody has quoted may begin with one."""
    told = complaint(tmp_path, f"smtp:\n  password: {value}\nreceivers: {{}}\n")
    assert "correct" not in told


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """Neither by what holds it, nor, from then on, in any line of the log."""
    found = read(tmp_path, WHOLE)
    shown = repr(found) + repr([(each, each.section) for each in found.receivers]) + repr(found.smtp)
    shown += scrub(f"cannot post to {HOOK}: correct-horse, battery-staple")
    for secret in ("horse", "staple", "very-secret-path", "spaces/x"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("receivers: {a: {kind: slak, url: 'http://a/'}}", "receivers.a.kind: expected one of email, slack,"),
        ("receivers: {a: {kind: [slack]}}", "receivers.a.kind: expected one of"),
        ("receivers: {a: {url: 'http://a/'}}", "receivers.a.kind: expected one of"),
        ("receivers: {a: {kind: slack}}", "receivers.a.url: is required"),
        (
            "receivers: {a: {kind: slack, url: 'ftp://very-secret'}}",
            "receivers.a.url: expected a URL as https://HOST[:PORT]/PATH",
        ),
        (
            "receivers: {a: {kind: slack, url: 'http://a/', tempate: x}}",
            "receivers.a.tempate: unknown key; did you mean template?",
        ),
        (
            "receivers: {a: {kind: slack, url: 'http://a/', fallback: 3}}",
            "receivers.a.fallback: expected bool",
        ),
        ("receivers: {a/b: {kind: slack, url: 'http://a/'}}", 'receivers["a/b"]: a name has'),
        ("receivers: {a: {kind: email, to: [x@y.example]}}", "smtp: is required for receivers of kind email"),
        ("receivers: {a: {kind: email, to: []}}", "receivers.a.to: expected 1 to 100 addresses"),
        (
            "receivers: {a: {kind: email, to: [x@y.example, z@y.example, x@y.example]}}",
            "receivers.a.to[2]: is the same address as to[0]",
        ),
        (
            'receivers: {a: {kind: email, to: ["x@y.example\\nBcc: z@y.example"]}}',
            "receivers.a.to[0]: expected an address",
        ),
        (
            "receivers: {a: {kind: pagerduty, routing_key: correct-horse}}",
            "receivers.a.routing_key: must not be in this file; write ${env:NAME} or ${file:PATH}",
        ),
        (
            "receivers: {a: {kind: pagerduty, routing_key: '${env:NOPE}'}}",
            "receivers.a.routing_key: what ${env:NOPE} stands for is not there, or is empty",
        ),
        (
            "receivers: {a: {kind: pagerduty, routing_key: '${env:EMPTY}'}}",
            "receivers.a.routing_key: what ${env:EMPTY} stands for",
        ),
        (
            "receivers: {a: {kind: pagerduty, routing_key: '${env:KEY'}}",
            "receivers.a.routing_key: has a ${ that begins no reference",
        ),
        (
            "receivers: {a: {kind: slack, url: 'http://a/', template: none.txt}}",
            "receivers.a.template: cannot be read: No such file or directory",
        ),
        ("receivers: {}\nsmtp: {host: a, from: x}", "smtp.from: expected an address as NAME@DOMAIN"),
        (
            "receivers: {}\nsmtp: {host: a, from: x@y.z, ca: none.pem}",
            "smtp.ca: cannot be used: No such file",
        ),
        ("receivers: {}\nsmtp: {host: a, from: x@y.z, ca: hook}", "smtp.ca: cannot be used: "),
        ("receivers: {}\nsmtp: {host: a}", "smtp.from: is required"),
        (
            "receivers: {}\nsmtp: {host: a, from: x@y.z, user: u}",
            "smtp.password: is required; user and password go together",
        ),
        (
            "receivers: {}\nsmtp: {host: a, from: x@y.z, user: u, password: '${env:KEY}', tls: none}",
            "smtp.tls: must not be none with a password",
        ),
        ("receivers: {}\nsmtp: {host: a, from: x@y.z, port: 0}", "smtp.port: expected int >= 1"),
        ("receivers: {}\nconsole_url: herd", "console_url: expected a URL"),
        ("recievers: {}", "recievers: unknown key; did you mean receivers?; receivers: is required"),
        ("receivers: {}\nreceivers: {}", "line 2: key 'receivers' twice"),
        ("receivers: [", "line 1: "),
        ("- a", "expected object, got array"),
        ("", "expected object, got null"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_field(tmp_path: Path, text: str, wanted: str) -> None:
    """And repeats no value, which may be a secret."""
    told = complaint(tmp_path, text)
    assert told.startswith(f"--alarm-receivers {tmp_path / 'receivers.yaml'}: {wanted}")
    assert "\n" not in told
    assert "horse" not in told
    assert "very-secret" not in told


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """A person mends a file once."""
    told = complaint(tmp_path, "receivers: {a: {kind: slack}, b: {kind: teams}, c: {kind: x}}")
    assert all(f"receivers.{name}." in told for name in "abc")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("{{ status }}\n{{ nope }}", "line 2: 'nope' is undefined"),
        ("{{ status }}\n\n{% for x in subjects %}{{ x.nope }}{% endfor %}", "line 3: 'dict object' has no"),
        ("{% if %}", "line 1: Expected an expression"),
        ("{{ ''.__class__.__mro__ }}", "line 1: access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ subjects.append(1) }}", "line 1: access to attribute 'append'"),
        ("{% include 'alarm.txt' %}{{ 1 / 0 }}", "line 1: division by zero"),
        ("{% if is_resolved %}done{% else %}{{ console.nope.x }}{% endif %}", "line 1: "),
        ("{{ status if not is_repeat }}", "gives an empty text"),
        ("x" * 100_001, "has more than 100000 bytes"),
    ],
)
def test_a_mistake_in_a_template_is_found_at_the_start(tmp_path: Path, source: str, wanted: str) -> None:
    """Whichever kind of message it is in: each is tried."""
    (tmp_path / "bad.txt").write_text(source)
    told = complaint(tmp_path, "receivers: {a: {kind: slack, url: 'http://a/', template: bad.txt}}")
    assert f"receivers.a.template: {wanted}" in told


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    """It is a setting, not a stream."""
    with pytest.raises(StartupError, match="has more than 1048576 bytes"):
        read_receivers("/dev/zero")
