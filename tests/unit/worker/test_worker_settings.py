from __future__ import annotations

from typing import Any

import pytest

from configuration.settings import SettingsError, resolve, settings_of
from worker.settings import WorkerSettings


def given(**flags: Any) -> WorkerSettings:
    """The settings as they come from the command line."""
    return resolve(WorkerSettings, flags={"group": "g"} | flags, environ={}, table={}, origin="")


def test_a_group_is_all_a_worker_needs_to_be_told() -> None:
    """Everything else has a default."""
    settings = given()
    assert settings.manager == ("http://127.0.0.1:8470",)
    assert settings.assignor == ("sticky",)
    assert (settings.session_timeout_ms, settings.rebalance_timeout_ms) == (10_000, 60_000)
    assert (settings.heartbeat_wait_ms, settings.stop_timeout_ms) == (3000, 30_000)


def test_every_setting_says_what_it_is() -> None:
    """It is the text of `--help`."""
    assert all(len(setting.description) > 15 for setting in settings_of(WorkerSettings))


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("group", "a/b"),
        ("group", ".."),
        ("instance_id", "a b"),
        ("manager", ["127.0.0.1:8470"]),
        ("manager", ["http://host:1/path"]),
        ("manager", ["http://host:port"]),
        ("capacity", "0"),
        ("capacity", "inf"),
        ("capacity", "nan"),
        ("max_tasks", "0"),
        ("max_tasks", "many"),
        ("session_timeout_ms", "0"),
        ("stop_timeout_ms", "-1"),
        ("label", ["zone"]),
        ("client_id", ""),
    ],
)
def test_a_wrong_value_is_refused_by_the_flag_s_name(flag: str, value: Any) -> None:
    """Before the worker starts anything."""
    with pytest.raises(SettingsError, match="^--" + flag.replace("_", "-")):
        given(**{flag: value})


@pytest.mark.parametrize(
    ("wait", "session", "capped"), [(3000, 10_000, 3000), (3000, 3000, 1000), (0, 9000, 0)]
)
def test_a_heartbeat_is_held_a_third_of_the_session_at_most(wait: int, session: int, capped: int) -> None:
    """The manager would not hold it longer (protocol §3.3)."""
    settings = given(heartbeat_wait_ms=str(wait), session_timeout_ms=str(session))
    assert settings.wait_ms == capped


@pytest.mark.parametrize(
    "url",
    [
        "sc://spark.example:15002",
        "sc://spark.example",
        "sc://spark.example:15002/",
        "sc://spark.example:15002/;token=abc;use_ssl=true;user_id=flights",
    ],
)
def test_a_spark_connect_server(url: str) -> None:
    """Its URL may carry parameters, as PySpark has them."""
    assert given(spark_remote=url).spark_remote == url


@pytest.mark.parametrize(
    "url",
    [
        "spark.example:15002",
        "http://spark.example:15002",
        "sc://",
        "sc://spark.example/path;token=s3cret",
        "sc://spark.example/;token",
        "sc://spark.example/;token=s3cret;session_id=9b590035-96d3-4042-8a09-e9e2d49a9ec6",
        "sc://user:s3cret@spark.example/",
    ],
)
def test_no_spark_connect_server(url: str) -> None:
    """The refusal names the flag, and never the URL, which may carry a token."""
    with pytest.raises(SettingsError, match=r"^--spark-remote: malformed") as refused:
        given(spark_remote=url)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_spark_only() -> None:
    """A worker has a JVM of its own or a server; it is told that it cannot have both."""
    with pytest.raises(SettingsError, match="--spark-master and --spark-remote exclude each other"):
        given(spark_master="local[2]", spark_remote="sc://spark.example")
    assert given().spark_master is None


def test_isolation_and_its_memory() -> None:
    """Off unless it is asked for."""
    assert not given().isolate
    settings = given(isolate=True, isolate_memory_mb="768")
    assert (settings.isolate, settings.isolate_memory_mb) == (True, 768)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"isolate": True, "spark_remote": "sc://spark:15002"},
            "--isolate and --spark-remote exclude",
        ),
        ({"isolate_memory_mb": "768"}, "--isolate-memory-mb goes with --isolate"),
        ({"isolate": True, "isolate_memory_mb": "511"}, "--isolate-memory-mb"),
    ],
)
def test_what_isolation_does_not_go_with(flags: dict[str, Any], said: str) -> None:
    """It is refused by name, with the reason."""
    with pytest.raises(SettingsError, match=f"^{said}"):
        given(**flags)
