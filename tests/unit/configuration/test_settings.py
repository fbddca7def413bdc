"""Settings from flags, environment and file (protocol §1)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from configuration.settings import (
    SettingsError,
    refuse_unknown_keys,
    resolve,
    settings_of,
    stray_variables,
    variables_of,
)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A role with a setting of each shape."""

    group: Annotated[str, Meta(pattern="^[a-z]+$", description="The group.")]
    wait_ms: Annotated[int, Meta(ge=10, le=100, description="A wait.")] = 50
    max_size: Annotated[int, Meta(ge=1, description="A limit.")] | None = None
    capacity: Annotated[float, Meta(gt=0)] = 1.0
    verbose: bool = False
    assignor: Annotated[tuple[str, ...], Meta(min_length=1, description="Several.")] = ("sticky",)
    conf: dict[str, str] = {}
    other: str = msgspec.field(name="spelt_otherwise", default="")

    def __post_init__(self) -> None:
        if self.max_size == self.wait_ms:
            raise ValueError("--max-size and --wait-ms must differ")


def sample(
    flags: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    table: dict[str, Any] | None = None,
) -> Sample:
    """Resolve with a group given, so that a test gives only what it is about."""
    return resolve(
        Sample,
        flags={"group": "herd", **(flags or {})},
        environ=environ or {},
        table=table or {},
        origin="herd.toml [sample]",
    )


def test_defaults() -> None:
    """What is given nowhere has its default."""
    assert sample() == Sample(group="herd")


@pytest.mark.parametrize(
    ("flags", "environ", "table", "wait_ms"),
    [
        ({"wait_ms": "11"}, {"SPARKHERD_WAIT_MS": "12"}, {"wait_ms": 13}, 11),
        ({}, {"SPARKHERD_WAIT_MS": "12"}, {"wait_ms": 13}, 12),
        ({"wait_ms": None}, {}, {"wait_ms": 13}, 13),
    ],
)
def test_precedence(
    flags: dict[str, Any], environ: dict[str, str], table: dict[str, Any], wait_ms: int
) -> None:
    """Flag beats environment beats file beats default."""
    assert sample(flags, environ, table).wait_ms == wait_ms


def test_shapes_from_flags() -> None:
    """Repeated flags make lists and mappings; a value may itself contain an equals sign."""
    found = sample({"assignor": ("a", "b"), "conf": ("x=1", "y=a=b"), "verbose": True})
    assert (found.assignor, found.conf, found.verbose) == (("a", "b"), {"x": "1", "y": "a=b"}, True)


def test_a_list_may_be_one_flag_with_commas() -> None:
    """As in the environment; the values of mappings keep their commas."""
    found = sample({"assignor": ("a, b", "c"), "conf": ("x=1,y=2",)})
    assert (found.assignor, found.conf) == (("a", "b", "c"), {"x": "1,y=2"})


def test_shapes_from_environment() -> None:
    """Texts become what the schema says; lists and mappings are separated by commas."""
    environ = {
        "SPARKHERD_ASSIGNOR": "a, b",
        "SPARKHERD_CONF": "x=1,y=2",
        "SPARKHERD_VERBOSE": "true",
        "SPARKHERD_CAPACITY": "2.5",
        "SPARKHERD_MAX_SIZE": "7",
        "SPARKHERD_SPELT_OTHERWISE": "z",
    }
    expected = Sample(
        group="herd",
        assignor=("a", "b"),
        conf={"x": "1", "y": "2"},
        verbose=True,
        capacity=2.5,
        max_size=7,
        other="z",
    )
    assert sample(environ=environ) == expected


def test_line_breaks_separate_values_that_have_commas() -> None:
    """A variable with a line break in it is split there instead."""
    assert sample(environ={"SPARKHERD_CONF": "jars=a.jar,b.jar\n"}).conf == {"jars": "a.jar,b.jar"}


def test_empty_flags_of_lists_leave_the_environment_alone() -> None:
    """Click hands an empty tuple for a repeatable flag that was not given."""
    assert sample({"assignor": ()}, {"SPARKHERD_ASSIGNOR": "a"}).assignor == ("a",)


@pytest.mark.parametrize(
    ("flags", "environ", "table", "message"),
    [
        ({"wait_ms": "9"}, {}, {}, "--wait-ms: expected int >= 10, got '9'"),
        ({"wait_ms": "soon"}, {}, {}, "--wait-ms: expected int, got 'soon'"),
        ({}, {"SPARKHERD_WAIT_MS": "1.5"}, {}, "SPARKHERD_WAIT_MS: expected int, got '1.5'"),
        ({}, {}, {"wait_ms": "50"}, "herd.toml [sample] wait_ms: expected int, got '50'"),
        ({"group": "A secret"}, {}, {}, "--group: malformed (The group)"),
        ({"conf": ("x",)}, {}, {}, "--conf: expected KEY=VALUE, got 'x'"),
        ({"max_size": "50"}, {}, {}, "--max-size and --wait-ms must differ"),
        ({"group": None}, {}, {}, "--group is missing; give it, or SPARKHERD_GROUP in the environment"),
    ],
)
def test_errors_name_the_place(
    flags: dict[str, Any], environ: dict[str, str], table: dict[str, Any], message: str
) -> None:
    """Each error names the flag, variable or key, and never repeats a text, which may be a secret."""
    with pytest.raises(SettingsError) as caught:
        sample(flags, environ, table)
    assert str(caught.value) == message


def test_unknown_key_is_refused() -> None:
    """A misspelt key of the file is an error that names it."""
    with pytest.raises(SettingsError, match=r"herd.toml \[sample\]: unknown key 'wait'"):
        refuse_unknown_keys([Sample], {"wait": 1, "wait_ms": 50}, "herd.toml [sample]")


def test_stray_variables() -> None:
    """Variables with our prefix that set nothing are found; the others are none of our business."""
    environ = {"SPARKHERD_WAIT_MS": "1", "SPARKHERD_WIAT_MS": "1", "PATH": "/bin"}
    assert stray_variables(environ, variables_of(Sample)) == ("SPARKHERD_WIAT_MS",)


def test_settings_describe_themselves() -> None:
    """Flag, variable, unit, shape and description come from the one schema."""
    by_name = {setting.name: setting for setting in settings_of(Sample)}
    assert (by_name["wait_ms"].flag, by_name["wait_ms"].variable) == ("--wait-ms", "SPARKHERD_WAIT_MS")
    assert by_name["wait_ms"].unit == "ms"
    assert by_name["max_size"].description == "A limit."
    assert by_name["other"].flag == "--spelt-otherwise"
    assert [s.shape for s in by_name.values()][4:7] == ["switch", "list", "mapping"]
    assert [s.name for s in by_name.values() if s.required] == ["group"]
