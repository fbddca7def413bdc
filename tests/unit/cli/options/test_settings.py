"""Settings on the command line: flags made from the schema, and the --config file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from msgspec import Meta

from cli.options.settings import SettingSources, settings_options, warn_of_stray_variables
from configuration.settings import SettingsError

if TYPE_CHECKING:
    from pathlib import Path


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A role with one setting of each shape."""

    group: Annotated[str, Meta(description="The group.")]
    wait_ms: Annotated[int, Meta(ge=1, description="How long to wait.")] = 50
    assignor: Annotated[tuple[str, ...], Meta(description="Which to use.")] = ("sticky",)
    conf: Annotated[dict[str, str], Meta(description="More.")] = {}
    verbose: Annotated[bool, Meta(description="Say more.")] = False


@click.command()
@settings_options(Role)
def role(**flags: Any) -> None:
    """Resolve the settings; the table is the manager's."""
    click.echo(SettingSources("manager", flags, [Role]).resolve(Role))


def invoke(*args: str, env: dict[str, str] | None = None) -> str:
    """What the role's settings are; a refusal is raised."""
    return CliRunner().invoke(role, args, env=env, catch_exceptions=False).output.strip()


def config(tmp_path: Path, text: str) -> str:
    """A file with that text."""
    path = tmp_path / "herd.toml"
    path.write_text(text)
    return str(path)


def test_flags() -> None:
    """Every shape can be given as a flag."""
    given = invoke(
        *("--group", "g", "--wait-ms", "7", "--assignor", "a", "--assignor", "b"),
        *("--conf", "x=1", "--conf", "y=2", "--verbose"),
    )
    expected = Role(group="g", wait_ms=7, assignor=("a", "b"), conf={"x": "1", "y": "2"}, verbose=True)
    assert given == str(expected)


def test_switch_can_be_turned_off(tmp_path: Path) -> None:
    """--no-X beats a file that turns X on."""
    path = config(tmp_path, '[manager]\ngroup = "g"\nverbose = true')
    assert invoke("--config", path) == str(Role(group="g", verbose=True))
    assert invoke("--config", path, "--no-verbose") == str(Role(group="g"))


def test_file_is_the_weakest(tmp_path: Path) -> None:
    """Flag and environment beat the file."""
    path = config(tmp_path, '[manager]\ngroup = "g"\nwait_ms = 1\nassignor = ["a"]\n[worker]\nfoo = 1')
    assert invoke("--config", path, env={"SPARKHERD_WAIT_MS": "2"}) == str(
        Role(group="g", wait_ms=2, assignor=("a",))
    )


def test_file_from_the_environment(tmp_path: Path) -> None:
    """SPARKHERD_CONFIG stands in for --config."""
    path = config(tmp_path, '[manager]\ngroup = "g"')
    assert invoke(env={"SPARKHERD_CONFIG": path}) == str(Role(group="g"))


def test_help_shows_defaults_and_units() -> None:
    """The help says what a setting is for, its unit and its default, or that it must be given."""
    text = " ".join(invoke("--help").split())
    assert "--wait-ms MS How long to wait. [default: 50]" in text
    assert "--group VALUE The group. [required]" in text
    assert "--assignor VALUE Which to use. May be repeated. [default: sticky]" in text
    assert "--conf KEY=VALUE More. May be repeated." in text
    assert "--verbose / --no-verbose Say more. [default: off]" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[manager]\ngruop = 1", "unknown key 'gruop'"),
        ("[manger]\ngroup = 1", "unknown table or key 'manger'"),
        ("[manager", "not TOML"),
        ("manager = 1", "manager must be a table"),
        ("[manager]\ngroup = 1", "[manager] group: expected str"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong with a file is said with the file's name."""
    with pytest.raises(SettingsError) as caught:
        invoke("--config", config(tmp_path, text))
    assert "herd.toml" in str(caught.value)
    assert message in str(caught.value)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    """A file that is not there, or not text, is an error and not a default."""
    with pytest.raises(SettingsError, match="No such file"):
        invoke("--config", str(tmp_path / "missing.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not TOML"):
        invoke("--config", str(tmp_path / "binary.toml"))


def test_stray_variables_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable with our prefix that no role reads is named on stderr; another role's is not."""
    monkeypatch.setenv("SPARKHERD_LISTEN", "127.0.0.1:1")
    monkeypatch.setenv("SPARKHERD_GROUP", "g")
    monkeypatch.setenv("SPARKHERD_LISTNE", "127.0.0.1:1")
    warn_of_stray_variables()
    assert capsys.readouterr().err == (
        "sparkherd: warning: SPARKHERD_LISTNE is not a setting and has no effect\n"
    )
