"""All that a manager can be asked, of one that never starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.app import api_of, endpoints_of
from manager.cluster.directory import OneManager
from manager.http.openapi.description import OpenApiHandlers
from manager.runtime.runtime import Runtime
from manager.settings import GroupSettings
from manager.storage.sql import SqlStorage
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from manager.http.endpoint import Endpoint


def all_endpoints() -> list[Endpoint]:
    """In the order of their routes."""
    return endpoints_of(*_idle())


def api_endpoints() -> list[Endpoint]:
    """Those of the API."""
    api = api_of(*_idle())
    return [*api, *OpenApiHandlers(api).endpoints()]


def _idle() -> tuple[Runtime, OneManager]:
    runtime = Runtime(GroupSettings(), SqlStorage("sqlite+aiosqlite://"))
    return runtime, OneManager(runtime, Coordinator("m", "http://m"))
