"""`sparkherd alarms`: rules from a file, what rings, and who has seen it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import LONGEST_SILENCE_MS, AlarmRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

LAG: dict[str, Any] = {"name": "lag", "kind": "lag_rows", "threshold": 5}
ALARM: dict[str, Any] = {
    "group": "herd",
    "rule": "lag",
    "kind": "lag_rows",
    "severity": "critical",
    "state": "firing",
    "since_ms": 1,
    "task": "delays",
    "value": 1234567.0,
    "threshold": 5.0,
    "acknowledged_by": "ann",
    "silenced": True,
}


OF_HERD: dict[str, Any] = {
    "group": None,
    "rule": "manager-gone",
    "kind": "manager_gone",
    "severity": "warning",
    "state": "firing",
    "since_ms": 1,
    "manager": "10.0.0.7:8470",
}


@pytest.fixture
def ruled(herd: ScriptedManager) -> ScriptedManager:
    """A manager with one rule."""
    answer = {"error": "NONE", "rules": [LAG], "version": 3, "etag": '"3"'}
    herd.on("GET", "/v1/alarms/rules", answer)
    herd.on("PUT", "/v1/alarms/rules", answer)
    return herd


def written(tmp_path: Path, *rules: dict[str, Any]) -> str:
    path = tmp_path / "alarms.yaml"
    path.write_text(yaml.safe_dump({"rules": list(rules)}))
    return str(path)


def test_init_prints_what_apply_takes(sparkherd: Callable[..., Run]) -> None:
    """Read back they are the rules that are tried with an ordinary hour."""
    told = yaml.safe_load(sparkherd("alarms", "init").out)
    assert msgspec.convert(told["rules"], tuple[AlarmRule, ...]) == DEFAULT_RULES


def test_apply_shows_what_differs(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path
) -> None:
    """Field by field; the manager is told which rules were seen."""
    path = written(tmp_path, LAG | {"threshold": 9}, {"name": "failed", "kind": "failed"})
    told = sparkherd("alarms", "apply", path, "--manager", ruled.url)
    assert (told.code, told.out.splitlines()) == (
        0,
        [
            "rules: changed",
            "    ~ lag.threshold: 5.0 -> 9.0",
            '    + failed.name: "failed"',
            '    + failed.kind: "failed"',
        ],
    )
    ((_, body),) = ruled.asked("PUT")
    assert (body["if_match"], body["validate_only"], len(body["rules"])) == ('"3"', False, 2)


def test_a_dry_run_only_looks(sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path) -> None:
    """The manager checks, and keeps nothing."""
    told = sparkherd("alarms", "apply", written(tmp_path), "--dry-run", "--manager", ruled.url)
    assert told.out.splitlines()[0] == "rules: would be changed"
    assert ruled.asked("PUT")[0][1]["validate_only"] is True


def test_what_is_the_same_is_unchanged(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path
) -> None:
    """Doing it twice changes nothing more."""
    told = sparkherd("alarms", "apply", written(tmp_path, LAG), "--json", "--manager", ruled.url)
    assert json.loads(told.out) == {"dry_run": False, "changes": []}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [{name: a, kind: lag}]", "rules[0].kind: Invalid enum value 'lag'"),
        (
            "rules: [{name: a, kind: failed, treshold: 1}]",
            "rules[0]: Object contains unknown field `treshold`",
        ),
        ("rules: [{name: a, kind: failed, tasks: 'a[b]'}]", "rules[0].tasks: Expected `str` matching regex"),
        ("rule: []", "Object contains unknown field `rule`"),
        ("rules: [", "alarms.yaml:1:9: not YAML: "),
        ("rules: [{name: a, threshold: 2026-13-45}]", "alarms.yaml: has a value that is none: month must be"),
        ("rules: [{name: a, threshold: !!int x}]", "alarms.yaml: has a value that is none: invalid literal"),
        (
            "rules: " + "[" * 1000 + "]" * 1000,
            "alarms.yaml: has an anchor that contains itself, or nests too",
        ),
        (
            'rules: [{name: "\\ud800", kind: failed}]',
            "alarms.yaml: has a text with '\\ud800', half of a surrogate",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_its_field(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path, text: str, said: str
) -> None:
    """Before anything is asked of a manager."""
    (tmp_path / "alarms.yaml").write_text(text)
    told = sparkherd("alarms", "apply", str(tmp_path / "alarms.yaml"), "--manager", ruled.url)
    assert (told.code, ruled.requests) == (2, [])
    assert said in told.err


def test_a_file_is_utf_8_whatever_the_locale_says(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all files are that the manager and the commands read."""
    monkeypatch.setattr("locale.getencoding", lambda: "latin-1")
    path = tmp_path / "alarms.yaml"
    path.write_bytes("rules: [{name: a, kind: failed, labels: {stage: größe}}]".encode())
    assert sparkherd("alarms", "apply", str(path), "--manager", ruled.url).code == 0
    assert ruled.asked("PUT")[0][1]["rules"][0]["labels"] == {"stage": "größe"}
    path.write_bytes(b"rules: \xff")
    assert (
        "alarms.yaml: not UTF-8 text" in sparkherd("alarms", "apply", str(path), "--manager", ruled.url).err
    )


def test_what_the_manager_finds_wrong_is_told_line_by_line(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path
) -> None:
    """Each problem with its place in the file."""
    problems = [{"path": "rules[0].receivers[0]", "message": "there is no receiver ops"}]
    refused = {"error": "INVALID_REQUEST", "message": "m", "retriable": False, "problems": problems}
    ruled.on("PUT", "/v1/alarms/rules", refused, 400)
    told = sparkherd("alarms", "apply", written(tmp_path, LAG), "--manager", ruled.url)
    assert (told.code, told.err) == (2, "sparkherd: rules[0].receivers[0]: there is no receiver ops\n")


def test_rules_are_printed_as_a_file_has_them(sparkherd: Callable[..., Run], ruled: ScriptedManager) -> None:
    """Without what is as it is without being said."""
    assert yaml.safe_load(sparkherd("alarms", "rules", "--manager", ruled.url).out) == {"rules": [LAG]}


@pytest.mark.parametrize("command", [("rules",), ("apply",)], ids=" ".join)
def test_rules_that_the_manager_cannot_read_are_told(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """They are no part of the file, and whoever writes it is to know that they are there."""
    unread = {"name": "newer", "kind": "k", "why": "kind: Invalid enum value 'k'"}
    answer = {"error": "NONE", "rules": [LAG], "version": 4, "etag": '"4"', "unread": [unread]}
    ruled.on("GET", "/v1/alarms/rules", answer)
    ruled.on("PUT", "/v1/alarms/rules", answer)
    files = (written(tmp_path, LAG),) if command == ("apply",) else ()
    told = sparkherd("alarms", *command, *files, "--manager", ruled.url)
    assert (told.code, told.err) == (
        0,
        (
            "rule newer of kind k is kept and passed over: the manager cannot read it"
            " (kind: Invalid enum value 'k')\n"
        ),
    )


def test_a_key_that_a_file_has_twice_is_named(
    sparkherd: Callable[..., Run], ruled: ScriptedManager, tmp_path: Path
) -> None:
    """YAML, too, would take the last one without a word."""
    path = tmp_path / "alarms.yaml"
    path.write_text("rules:\n  - name: r\n    kind: lag_rows\n    threshold: 1\n    threshold: 900\n")
    told = sparkherd("alarms", "apply", str(path), "--manager", ruled.url)
    assert (told.code, ruled.asked("PUT")) == (2, [])
    assert "key 'threshold' twice" in told.err


def test_alarms_are_listed(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """Of all groups, of one, and with those that are over."""
    answer = {"error": "NONE", "alarms": [ALARM], "total": 3}
    herd.on("GET", "/v1/alarms", answer)
    herd.on("GET", "/v1/groups/herd/alarms", answer)
    told = sparkherd("alarms", "list", "--manager", herd.url)
    line = told.out.splitlines()[1].split()
    assert line[:6] == ["critical", "firing,", "silenced", "herd", "lag", "delays"]
    assert line[-3:] == ["1,234,570", "5", "ann"] or line[-3:] == ["1.23457e+06", "5", "ann"]
    assert told.err == "and 2 more\n"
    assert sparkherd("alarms", "list", "--group", "herd", "--manager", herd.url).code == 0
    assert sparkherd("alarms", "history", "herd", "--limit", "7", "--manager", herd.url).code == 0
    assert [path for path, _ in herd.asked("GET")] == [
        "/v1/alarms?limit=1000",
        "/v1/groups/herd/alarms?limit=1000",
        "/v1/groups/herd/alarms?limit=1000&past=7",
    ]


@pytest.mark.parametrize(
    ("asked", "path"),
    [(("list",), "/v1/alarms"), (("list", "--group", "herd"), "/v1/groups/herd/alarms")],
    ids=["of-all", "of-a-group"],
)
def test_the_list_is_asked_for_in_pages_up_to_a_bound(
    sparkherd: Callable[..., Run], herd: ScriptedManager, asked: tuple[str, ...], path: str
) -> None:
    """What is left out is told; each page begins where the one before has ended."""
    herd.on("GET", path, {"error": "NONE", "alarms": [ALARM] * 1000, "total": 10000, "next": "place"})
    told = sparkherd("alarms", *asked, "--limit", "2000", "--manager", herd.url)
    assert (len(told.out.splitlines()), told.err) == (2001, "and at least 8000 more\n")
    assert [path for path, _ in herd.asked("GET")] == [
        f"{path}?limit=1000",
        f"{path}?limit=1000&after=place",
    ]


def test_what_is_over_is_listed_behind_more_than_a_page_of_what_fires(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """All of a group's alarms are gone through: those that are over come last."""
    path, page = "/v1/groups/herd/alarms", {"error": "NONE", "alarms": [ALARM] * 1000, "total": 1001}
    over = ALARM | {"state": "resolved", "resolved_at_ms": 2}
    herd.on("GET", path, page | {"next": "place"})
    herd.on("GET", f"{path}?limit=1000&past=50&after=place", page | {"alarms": [over]})
    told = sparkherd("alarms", "history", "herd", "--manager", herd.url)
    assert (told.out.splitlines()[-1].split()[1], told.err) == ("resolved,", "")


def test_a_silence_is_made_and_ended(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """With an end and a reason."""
    made = {"id": "s1", "ends_at_ms": 1, "reason": "r", "by": "ann", "created_at_ms": 0}
    herd.on("POST", "/v1/alarms/silences", {"error": "NONE", "silence": made}, 201)
    herd.on("DELETE", "/v1/alarms/silences/s1", {"error": "NONE"})
    said = ("--by", "ann", "--reason", "r", "--for-minutes", "5", "--tasks", "de*")
    assert sparkherd("alarms", "silence", *said, "--manager", herd.url).out.startswith("s1: silent until ")
    ((_, body),) = herd.asked("POST")
    assert {name: body[name] for name in ("by", "reason", "rules", "groups", "tasks")} == {
        "by": "ann",
        "reason": "r",
        "rules": "*",
        "groups": "*",
        "tasks": "de*",
    }
    herd.on("GET", "/v1/alarms/silences", {"error": "NONE", "silences": [made]})
    assert sparkherd("alarms", "unsilence", "s1", "--manager", herd.url).out == "s1: ended\n"


def test_a_silence_for_longer_than_the_manager_takes_is_not_asked_for(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """The option is named, with its bound."""
    said = ("--by", "ann", "--reason", "r", "--for-minutes", str(LONGEST_SILENCE_MS // 60_000 + 1))
    told = sparkherd("alarms", "silence", *said, "--manager", herd.url)
    assert (told.code, herd.asked("POST")) == (2, [])
    assert "'--for-minutes'" in told.err
    assert "1<=x<=5260320" in told.err


def test_a_silence_that_is_not_there_is_not_said_to_be_ended(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """The one that was meant goes on."""
    herd.on("GET", "/v1/alarms/silences", {"error": "NONE", "silences": []})
    told = sparkherd("alarms", "unsilence", "s2", "--manager", herd.url)
    assert (told.code, told.out, herd.asked("DELETE")) == (1, "", [])
    assert "there is no silence s2" in told.err


def test_an_alarm_is_acknowledged(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """By name, of one task."""
    herd.on("POST", "/v1/groups/herd/alarms/acknowledge", {"error": "NONE", "acknowledged": 1})
    told = sparkherd("alarms", "ack", "herd", "lag", "--by", "ann", "--task", "t", "--manager", herd.url)
    assert told.out == "lag: 1 acknowledged\n"
    assert herd.asked("POST")[0][1] == {"rule": "lag", "by": "ann", "task": "t", "member": None}


def test_an_alarm_of_no_group_is_shown_and_acknowledged(
    sparkherd: Callable[..., Run], herd: ScriptedManager
) -> None:
    """A manager, or the database, stands where tasks do."""
    of_database = OF_HERD | {"rule": "db", "kind": "database_failing", "manager": None}
    herd.on("GET", "/v1/alarms", {"error": "NONE", "alarms": [OF_HERD, of_database], "total": 2})
    told = sparkherd("alarms", "list", "--manager", herd.url).out.splitlines()
    assert told[1].split()[:5] == ["warning", "firing", "-", "manager-gone", "10.0.0.7:8470"]
    assert told[2].split()[:5] == ["warning", "firing", "-", "db", "database"]
    herd.on("POST", "/v1/alarms/acknowledge", {"error": "NONE", "acknowledged": 1})
    asked = ("manager-gone", "--by", "ann", "--manager-id", "10.0.0.7:8470", "--manager", herd.url)
    assert sparkherd("alarms", "ack-herd", *asked).out == "manager-gone: 1 acknowledged\n"
    body = {"rule": "manager-gone", "by": "ann", "manager": "10.0.0.7:8470"}
    assert herd.asked("POST")[0][1] == body
