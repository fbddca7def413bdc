"""The application: every endpoint of the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from manager.access.authorizer import open_to_all
from manager.console.site import Console
from manager.http.audit_log import AuditLog
from manager.http.authorization import Authorization
from manager.http.endpoints.alarm_receivers import AlarmReceiverHandlers, NobodyTold
from manager.http.endpoints.alarms import AlarmHandlers
from manager.http.endpoints.audit import AuditHandlers, NothingKept
from manager.http.endpoints.checks import CheckHandlers
from manager.http.endpoints.cluster import ClusterHandlers
from manager.http.endpoints.events import EventHandlers
from manager.http.endpoints.groups import GroupHandlers
from manager.http.endpoints.health import HealthHandlers
from manager.http.endpoints.login import Login
from manager.http.endpoints.members import MemberHandlers
from manager.http.endpoints.metrics import MetricsHandlers
from manager.http.endpoints.quarantine import QuarantineHandlers
from manager.http.endpoints.sinks import SinkHandlers
from manager.http.endpoints.task_lists import TaskListHandlers
from manager.http.endpoints.tasks import TaskHandlers
from manager.http.endpoints.transfers import TransferHandlers
from manager.http.forwarding import Forwarding
from manager.http.front.application import Application
from manager.http.openapi.description import OpenApiHandlers

if TYPE_CHECKING:
    import ssl

    from manager.access.authorizer import Authorizer
    from manager.access.rates import Rates
    from manager.background.audit_writer import AuditWriter
    from manager.background.herd_alarms import HerdAlarms
    from manager.cluster.directory import Directory
    from manager.http.endpoint import Endpoint
    from manager.http.endpoints.alarm_receivers import ReceiverDirectory
    from manager.http.endpoints.audit import AuditReader
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.groups import Coordinator


def make_app(
    runtime: CoordinatorRuntime,
    this_manager: Coordinator,
    max_request_bytes: int,
    directory: Directory,
    *,
    access: Authorizer | None = None,
    rates: Rates | None = None,
    tls: ssl.SSLContext | None = None,
    hsts_max_age_s: int | None = None,
    audit_writer: AuditWriter | None = None,
    alarms: HerdAlarms | None = None,
    receivers: ReceiverDirectory | None = None,
) -> Application:
    """Put the handlers together; `manager.http.front.server` serves them.

    Args:
        runtime: where requests go.
        this_manager: what is told to whoever looks for a group's coordinator, and who forwards requests.
        max_request_bytes: larger bodies are refused, unread if they say so themselves.
        directory: who has which group.
        access: who may ask for what; without it, everybody for everything.
        rates: how often one client may ask; without it, as often as it likes.
        tls: how other managers' certificates are checked.
        alarms: the rules and silences of the herd; without them they cannot be asked for.
        audit_writer: where what admins do is written down; without it, in the log only.
        receivers: who is told of alarms; without it, nobody.
        hsts_max_age_s: how long browsers are to ask by https only; None where that is not spoken.
    """
    access = access or open_to_all()
    forwarding = Forwarding(directory, this_manager, tls)
    authorization = Authorization(
        access, rates, AuditLog(None if audit_writer is None else audit_writer.put, this_manager.id)
    )
    app = Application(runtime, max_request_bytes, _headers(hsts_max_age_s), forwarding.session, runtime.share)
    besides = Besides(audit_writer, forwarding, alarms, receivers)
    for endpoint in endpoints_of(runtime, directory, besides):
        handler = (
            forwarding.wrap(endpoint.serve, endpoint.held_s) if endpoint.is_forwarded else endpoint.serve
        )
        app.add(endpoint.method, endpoint.path, authorization.wrap(endpoint, handler))
    for method, path, page in Login(access, rates).pages():
        app.add(method, path, page)
    return app


class Besides(NamedTuple):
    """What some endpoints need besides groups, each None where there is none.

    Without `audit` nothing is kept of what admins did; by `forwarding` other managers are asked. `alarms` are
    the rules and silences of the herd, without which whoever asks for them is turned away, `receivers` those
    who are told.
    """

    audit: AuditReader | None = None
    forwarding: Forwarding | None = None
    alarms: HerdAlarms | None = None
    receivers: ReceiverDirectory | None = None


def endpoints_of(
    runtime: CoordinatorRuntime, directory: Directory, besides: Besides | None = None
) -> list[Endpoint]:
    """Everything that a manager can be asked: the API, and the pages for people."""
    api = api_of(runtime, directory, besides)
    console = Console(runtime, directory, api, besides.alarms if besides is not None else None)
    return [*api, *OpenApiHandlers(api).endpoints(), *console.endpoints()]


def api_of(
    runtime: CoordinatorRuntime, directory: Directory, besides: Besides | None = None
) -> list[Endpoint]:
    """What programs ask, but for its description."""
    audit, forwarding, alarms, receivers = besides or Besides()
    return [
        *MemberHandlers(runtime).endpoints(),
        *TaskListHandlers(runtime).endpoints(),
        *TaskHandlers(runtime).endpoints(),
        *CheckHandlers(runtime).endpoints(),
        *QuarantineHandlers(runtime).endpoints(),
        *SinkHandlers().endpoints(),
        *ClusterHandlers(directory).endpoints(),
        *TransferHandlers(runtime, directory, forwarding).endpoints(),
        *EventHandlers(runtime.feed).endpoints(),
        *AlarmReceiverHandlers(receivers or NobodyTold()).endpoints(),
        *GroupHandlers(runtime).endpoints(),
        *AlarmHandlers(runtime, alarms, receivers).endpoints(),
        *AuditHandlers(audit or NothingKept()).endpoints(),
        *HealthHandlers(runtime).endpoints(),
        *MetricsHandlers(runtime.meter.instruments).endpoints(),
    ]


def _headers(hsts_max_age_s: int | None) -> dict[str, str]:
    """Browsers that have been here once let nobody lead them to the same name without TLS (RFC 6797)."""
    if hsts_max_age_s is None:
        return {}
    return {"Strict-Transport-Security": f"max-age={hsts_max_age_s}"}
