"""How checks are made: side by side, each with a limit, and none spoils the others."""

from __future__ import annotations

import threading

from cli.doctor.finding import Check, Finding, Settings, Status, examine, ok
from configuration.settings import SettingsError


def raising(error: Exception) -> Finding:
    raise error


def test_findings_come_in_the_order_of_the_checks() -> None:
    """The first one may be the last to be ready."""
    second_is_done = threading.Event()

    def first(_: Settings) -> Finding:
        second_is_done.wait(10)
        return ok("first")

    def second(_: Settings) -> Finding:
        second_is_done.set()
        return ok("second")

    found = examine([Check("a", first, 10), Check("b", second, 10)], Settings())
    assert list(found.items()) == [("a", ok("first")), ("b", ok("second"))]


def test_a_check_that_does_not_come_back_is_left_behind() -> None:
    """As one of a file system that hangs; the others are told all the same."""
    never = threading.Event()
    stuck = Check("stuck", lambda _: ok(str(never.wait())), 0.01)
    found = examine([stuck, Check("well", lambda _: ok("here"), 10)], Settings())
    assert (found["stuck"].status, found["stuck"].found) == (Status.PROBLEM, "no answer within 0.01 s")
    assert found["well"] == ok("here")
    never.set()


def test_a_wrong_setting_is_a_problem() -> None:
    """In the words that a worker would end with."""
    check = Check("x", lambda _: raising(SettingsError("--tls-ca: no such file")), 10)
    found = examine([check], Settings())["x"]
    assert (found.status, found.found) == (Status.PROBLEM, "--tls-ca: no such file")


def test_a_bug_in_a_check_is_told_as_one() -> None:
    """And does not end the command."""
    found = examine([Check("x", lambda _: raising(KeyError("y")), 10)], Settings())["x"]
    assert (found.status, found.found) == (Status.PROBLEM, "the check failed: KeyError: 'y'")
