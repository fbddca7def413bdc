"""What can be seen of the managers from here: do they answer, is the token good, do the clocks agree?"""

from __future__ import annotations

import stat
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cli.client.admin_client import UNANSWERED, AdminClient, RedirectError, UnreachableError
from cli.doctor.finding import ok, problem, skipped, warning
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from worker.client.bearer import find_token
from worker.client.tls import client_tls

if TYPE_CHECKING:
    from cli.doctor.finding import Finding, Settings

ANSWER_S: Final = 5.0
"""How long a manager may take for an answer, in seconds."""
START: Final = "start one (`sparkherd manager`), or name it with --manager URL"
UNANSWERED_TEXT: Final = "no manager answers"
GROUP: Final = "doctor"
"""What is asked about where no group is given; no such group is made."""
APART_S: Final = 5.0
FAR_APART_S: Final = 60.0
"""A clock that is so wrong spoils tokens' expiry, ages, and the numbers that `sparkherd run` begins with."""


def manager(settings: Settings) -> Finding:
    """Whether each manager takes requests."""
    faults = [fault for url in settings.manager if (fault := _fault(settings, url)) is not None]
    if not faults:
        return ok(f"ready: {', '.join(settings.manager)}")
    told = "; ".join(faults)
    return problem(told, START) if len(faults) == len(settings.manager) else warning(told, START)


def _fault(settings: Settings, url: str) -> str | None:
    """What is wrong with the manager at `url`."""
    try:
        _client(settings, [url]).get("/readyz", Response)
    except UnreachableError as error:
        return str(error).partition("; start one")[0]
    except RefusedError as error:
        return f"{url}: {error}"
    return None


def token(settings: Settings) -> Finding:
    """Whether managers know the token, and nobody else on this machine may read it."""
    bearer = find_token(settings.token_file)
    path = f"/v1/coordinator?group={quote(settings.group or GROUP, safe='')}"
    has_token = bool(bearer.headers)
    try:
        _client(settings, settings.manager).get(path, Response)
    except UnreachableError:
        return skipped(UNANSWERED_TEXT)
    except RefusedError as error:
        if (finding := _refused(settings, error, has_token=has_token)) is not None:
            return finding
    if not has_token:
        return ok("none given, and none needed")
    if settings.token_file is not None and stat.S_IMODE(Path(settings.token_file).stat().st_mode) & 0o077:
        return warning(f"others may read {settings.token_file}", f"chmod 600 {settings.token_file}")
    return ok(f"known to the manager{f', for group {settings.group}' if settings.group else ''}")


def _refused(settings: Settings, error: RefusedError, *, has_token: bool) -> Finding | None:
    """What a refusal says of the token; None if it is only that nobody said which group is meant."""
    if error.failure.code is ErrorCode.UNAUTHENTICATED:
        group = settings.group or "GROUP"
        make = f"have one made: sparkherd tokens create --role worker --group {group} NAME"
        return problem(str(error), make if has_token else f"{make}; then --token-file FILE")
    if error.failure.code is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return skipped(str(error))
    return problem(str(error), f"take a token for group {settings.group}") if settings.group else None


def clock(settings: Settings) -> Finding:
    """How far this machine's clock is from the managers'; they say the time with each answer, in seconds."""
    apart = [seconds for url in settings.manager if (seconds := _apart(settings, url)) is not None]
    if not apart:
        return skipped(UNANSWERED_TEXT)
    worst = max(apart, key=abs)
    found = f"{abs(worst):.0f} s {'before' if worst > 0 else 'behind'} a manager's"
    synchronise = "have both machines' clocks synchronised (chrony, systemd-timesyncd)"
    if abs(worst) >= FAR_APART_S:
        return problem(found, synchronise)
    return warning(found, synchronise) if abs(worst) >= APART_S else ok("agrees with the managers'")


def _apart(settings: Settings, url: str) -> float | None:
    """Seconds that this clock is ahead of that of the manager at `url`; None if that is not known."""
    client = _client(settings, [url])
    before = time()
    try:
        with client.asking(client.urls[0], "GET", "/healthz", headers={}, timeout_s=ANSWER_S) as answer:
            date = answer.headers.get("Date", "")
    except (*UNANSWERED, RedirectError):
        return None
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    ours = (before + time()) / 2
    return ours - theirs - 0.5  # they leave out the fraction: half a second is lost on average


def _client(settings: Settings, urls: tuple[str, ...] | list[str]) -> AdminClient:
    """One that waits for no manager longer than `ANSWER_S`; raises `StartupError` for what it cannot use."""
    tls = client_tls(settings.tls_ca, settings.tls_cert, settings.tls_key)
    return AdminClient(urls, timeout_s=ANSWER_S, bearer=find_token(settings.token_file), tls=tls)
