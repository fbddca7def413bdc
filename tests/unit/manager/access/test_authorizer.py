"""Who is let in."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
import pytest

from manager.access.authorizer import ANYBODY, Authorizer, Caller, bearer_of
from manager.access.exposure import Exposure
from manager.access.tokens import AccessToken, mint
from protocol.errors import Failure, StartupError
from protocol.roles import Role

VIEWERS = frozenset({Role.VIEWER})
NOW_MS = 1_000_000


def minted(role: Role = Role.VIEWER, *groups: str, **more: Any) -> tuple[str, AccessToken]:
    """A new token."""
    return mint(secrets.token_bytes, name="anna", role=role, groups=groups, created_at_ms=0, **more)


def access_with(*tokens: AccessToken, **more: Any) -> Authorizer:
    """Of a manager that knows these tokens."""
    access = Authorizer(lambda: NOW_MS, **more)
    access.learn(tokens)
    return access


def code(verdict: Caller | Failure) -> str:
    """NONE for somebody who is let in."""
    return verdict.code.name if isinstance(verdict, Failure) else "NONE"


def test_without_any_token_everybody_is_let_in_where_that_is_harmless() -> None:
    """And nobody where it is not."""
    assert access_with(open_without_tokens=True).admit(None, VIEWERS, ("g",)) is ANYBODY
    assert code(access_with().admit(None, VIEWERS, ("g",))) == "UNAUTHENTICATED"


def test_once_there_was_a_token_nobody_is_let_in_without() -> None:
    """Not even when the last one has been revoked: that must not open everything again."""
    text, token = minted()
    revoked = msgspec.structs.replace(token, revoked_at_ms=1)
    access = access_with(revoked, open_without_tokens=True)
    assert code(access.admit(None, VIEWERS, ("g",))) == "UNAUTHENTICATED"
    assert code(access.admit(text, VIEWERS, ("g",))) == "UNAUTHENTICATED"


def test_who_does_not_know_the_tokens_any_more_lets_nobody_in() -> None:
    """Neither by a verdict of before, nor where none was ever made; until they are learned again."""
    text, token = minted(Role.WORKER)
    header = f"Bearer {text}"
    for known in ([token], []):
        access = access_with(*known, open_without_tokens=True)
        assert access.admits_member(header, "g")
        access.close()
        assert not access.admits_member(header, "g")
        assert code(access.admit(text, VIEWERS, ("g",))) == "COORDINATOR_NOT_AVAILABLE"
        access.learn(known)
        assert access.admits_member(header, "g")


def test_a_role_that_is_not_known_opens_nothing() -> None:
    """Not even what takes no role in particular, and it is none of those that are needed."""
    text, token = minted()
    strange = msgspec.structs.replace(token, role="auditor")
    verdict = access_with(strange).caller(text)
    assert isinstance(verdict, Failure)
    assert verdict.message == "the token anna has the role auditor, which is not known here"
    assert not strange.may(VIEWERS)
    assert not strange.may(frozenset())


def test_tokens_that_do_not_count() -> None:
    """Unknown, expired and revoked ones; the last two are told so, for they are known."""
    text, token = minted(expires_at_ms=NOW_MS)
    stranger, _ = minted()
    for bearer, said in ((stranger, "not known"), ("nonsense", "not known"), (text, "anna has expired")):
        verdict = access_with(token).admit(bearer, VIEWERS, ("g",))
        assert isinstance(verdict, Failure)
        assert verdict.code.name == "UNAUTHENTICATED"
        assert said in verdict.message
        assert bearer not in verdict.message


def test_roles_and_groups() -> None:
    """What the token is not for is GROUP_AUTHORIZATION_FAILED."""
    text, token = minted(Role.OPERATOR, "flights", "test-*")
    access = access_with(token)
    assert code(access.admit(text, frozenset({Role.OPERATOR}), ("test-1",))) == "NONE"
    assert code(access.admit(text, frozenset({Role.ADMIN}), ("flights",))) == "GROUP_AUTHORIZATION_FAILED"
    assert code(access.admit(text, VIEWERS, ("flights", "other"))) == "GROUP_AUTHORIZATION_FAILED"


def test_what_is_about_all_groups_is_not_for_tokens_of_some() -> None:
    """Unless the answer tells of none, or of those only."""
    text, token = minted(Role.VIEWER, "flights")
    access = access_with(token)
    assert code(access.admit(text, VIEWERS, ())) == "GROUP_AUTHORIZATION_FAILED"
    caller = access.admit(text, VIEWERS, (), any_group=True)
    assert isinstance(caller, Caller)
    assert caller.covers("flights")
    assert not caller.covers("other")


def test_a_member_s_verdict_is_remembered_until_the_tokens_are_read_again() -> None:
    """So a heartbeat costs one look into a table; a revoked token does not count after they are read."""
    text, token = minted(Role.WORKER, "flights")
    header = f"Bearer {text}"
    access = access_with(token)
    for _ in range(2):
        assert access.admits_member(header, "flights")
        assert not access.admits_member(header, "other")
        assert not access.admits_member(None, "flights")
        assert not access.admits_member("Bearer \xff", "flights")
    access.learn([msgspec.structs.replace(token, revoked_at_ms=1)])
    assert not access.admits_member(header, "flights")


def test_members_without_a_certificate_where_one_is_needed() -> None:
    """Members only: people have none."""
    access = access_with(open_without_tokens=True, members_show_certificates=True)
    members = frozenset({Role.WORKER})
    assert code(access.admit(None, members, ("g",), is_certified=False)) == "UNAUTHENTICATED"
    assert code(access.admit(None, members, ("g",), is_certified=True)) == "NONE"
    assert code(access.admit(None, VIEWERS, ("g",), is_certified=False)) == "NONE"
    assert not access.admits_member(None, "g", is_certified=False)
    assert access.admits_member(None, "g", is_certified=True)


@pytest.mark.parametrize(
    ("header", "bearer"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        ("", None),
        (None, None),
    ],
)
def test_the_header(header: str | None, bearer: str | None) -> None:
    """The scheme's case does not matter."""
    assert bearer_of(header) == bearer


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
def test_a_manager_on_its_own_machine_needs_neither(address: str) -> None:
    """As it always was."""
    exposure = Exposure("x:1", address)
    exposure.require_tls(has_tls=False)
    exposure.require_tokens(has_tokens=False)
    assert exposure.is_harmless


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.7", "fe80::1%eth0"])
def test_beyond_it_both_are_needed_or_accepted_to_be_missing(address: str) -> None:
    """Each refusal is one line that names what to give."""
    exposure = Exposure("host:1", address)
    with pytest.raises(StartupError, match=r"^--listen host:1: .*--tls-cert and --tls-key.*--allow-insecure"):
        exposure.require_tls(has_tls=False)
    with pytest.raises(StartupError, match=r"^--listen host:1: .*sparkherd tokens create.*--allow-insecure"):
        exposure.require_tokens(has_tokens=False)
    exposure.require_tls(has_tls=True)
    exposure.require_tokens(has_tokens=True)
    accepted = Exposure("host:1", address, allowed=True)
    accepted.require_tls(has_tls=False)
    accepted.require_tokens(has_tokens=False)
