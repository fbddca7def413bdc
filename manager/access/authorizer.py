"""Who is let in: a rule over the tokens that are known at the moment. No I/O; the time is passed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.access.tokens import id_of, is_same
from protocol.errors import ErrorCode, Failure
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from manager.access.tokens import AccessToken

MEMBERS: Final = frozenset({Role.WORKER})
MAX_VERDICTS: Final = 10_000
"""Headers of members whose verdicts are remembered."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. Without a token, where none are needed, it is anybody, who may do anything."""

    token: AccessToken | None = None

    @property
    def name(self) -> str:
        """Who it is, as the audit log has it."""
        return "anybody" if self.token is None else self.token.owner

    def covers(self, group: str) -> bool:
        """Whether it may know of `group`."""
        return self.token is None or self.token.covers(group)

    @property
    def groups(self) -> tuple[str, ...]:
        """What it may know of, by name or by what names begin with and a `*`; none are all."""
        return () if self.token is None else self.token.groups

    @property
    def is_limited(self) -> bool:
        """Whether it is for some groups only."""
        return self.token is not None and bool(self.token.groups)

    def may(self, needed: frozenset[Role]) -> bool:
        """Whether its role is one of `needed` or above one of them."""
        return self.token is None or self.token.may(needed)


ANYBODY: Final = Caller()


class Authorizer:
    """The tokens as they were last read, and what follows from them.

    Args:
        members_show_certificates: members need a certificate as well, one that TLS has verified.
        open_without_tokens: let everybody in as long as no token was ever made.
        now_ms: milliseconds since 1970.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        open_without_tokens: bool = False,
        members_show_certificates: bool = False,
    ) -> None:
        self.members_show_certificates = members_show_certificates
        self._now_ms = now_ms
        self._open_without_tokens = open_without_tokens
        self._tokens: dict[str, AccessToken] = {}
        self._verdicts: dict[tuple[str | None, str], bool] = {}
        self._is_closed = False

    def learn(self, tokens: Iterable[AccessToken]) -> None:
        """These are all tokens there are."""
        self._tokens = {token.token_id: token for token in tokens}
        self._verdicts.clear()
        self._is_closed = False

    def close(self) -> None:
        """Nobody knows which tokens there are by now: nobody is let in until they are learned again."""
        self._verdicts.clear()
        self._is_closed = True

    @property
    def has_tokens(self) -> bool:
        """Whether one was ever made."""
        return bool(self._tokens)

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a token."""
        return self._open_without_tokens and not self._tokens and not self._is_closed

    def caller(self, bearer: str | None) -> Caller | Failure:
        """Who brings `bearer`, a token without the word before it; UNAUTHENTICATED if nobody known does."""
        if self.is_open:
            return ANYBODY
        if self._is_closed:
            return Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "tokens cannot be read now; try again")
        if bearer is None:
            return _unknown("a token is needed: Authorization: Bearer TOKEN")
        token = self._tokens.get(id_of(bearer) or "")
        if token is None or not is_same(token, bearer):
            return _unknown("the token is not known here")
        fault = self._fault_of(token)
        return Caller(token) if fault is None else _unknown(f"the token {token.name} has {fault}")

    def _fault_of(self, token: AccessToken) -> str | None:
        """Why a token that is known opens nothing."""
        if not token.is_live(self._now_ms()):
            return "expired" if token.revoked_at_ms is None else "been revoked"
        return None if isinstance(token.role, Role) else f"the role {token.role}, which is not known here"

    def admit(
        self,
        bearer: str | None,
        needed: frozenset[Role],
        groups: Collection[str],
        *,
        any_group: bool = False,
        is_certified: bool = True,
    ) -> Caller | Failure:
        """Who asks, if that may be.

        Args:
            bearer: the token, if any came.
            needed: the roles of which one is needed.
            groups: those that are asked about by name; with none it is about all.
            any_group: what is asked tells of no group, or only of those that the token covers.
            is_certified: whether a certificate came that TLS has verified.
        """
        if self.members_show_certificates and not is_certified and needed == MEMBERS:
            return _unknown("members have to show a certificate here: --tls-cert and --tls-key")
        caller = self.caller(bearer)
        if isinstance(caller, Failure) or caller.token is None:
            return caller
        token = caller.token
        if not token.may(needed):
            wanted = " or ".join(sorted(role.value for role in needed))
            return _denied(f"the token {token.name} has the role {token.role_name}, this takes {wanted}")
        for group in groups:
            if not token.covers(group):
                return _denied(f"the token {token.name} is not for group {group}")
        if not groups and token.groups and not any_group:
            return _denied(f"the token {token.name} is for some groups only, and this is about all")
        return caller

    def admits_member(self, authorization: str | None, group: str, *, is_certified: bool = True) -> bool:
        """Whether a member with this header may ask; quick: a verdict holds until tokens are read again."""
        if self.members_show_certificates and not is_certified:
            return False
        if self.is_open:
            return True
        key = (authorization, group)
        verdict = self._verdicts.get(key)
        if verdict is None:
            admitted = self.admit(bearer_of(authorization), MEMBERS, (group,))
            verdict = isinstance(admitted, Caller)
            if len(self._verdicts) >= MAX_VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict


def open_to_all() -> Authorizer:
    """Of a manager that has no tokens."""
    return Authorizer(lambda: 0, open_without_tokens=True)


def bearer_of(header: str | None) -> str | None:
    """The token in an `Authorization` header; None if there is none."""
    scheme, _, text = (header or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


def _unknown(message: str) -> Failure:
    return Failure(ErrorCode.UNAUTHENTICATED, message)


def _denied(message: str) -> Failure:
    return Failure(ErrorCode.GROUP_AUTHORIZATION_FAILED, message)
