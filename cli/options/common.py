"""What commands have alike: where the manager is, which group, in which form to answer, an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cli.client.admin_client import AdminClient
from cli.options import completers
from worker.client.bearer import find_token
from worker.client.tls import client_tls

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MANAGER: Final = "http://127.0.0.1:8470"


def _client(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    value: tuple[str, ...],
) -> AdminClient:
    """A client of the managers that `value` lists, with the credentials that were read before."""
    given = {name: ctx.meta.get(name) for name in _CREDENTIALS}
    tls = client_tls(given["tls_ca"], given["tls_cert"], given["tls_key"])
    urls = [url.strip() for urls in value for url in urls.split(",")]
    return AdminClient(urls, bearer=find_token(given["token_file"]), tls=tls, on_wait=_say)


def _say(line: str) -> None:
    click.echo(f"sparkherd: {line}", err=True)


def _keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """For `_client`, which is called after it."""
    ctx.meta[str(param.name)] = value


_CREDENTIALS: Final = {
    "token_file": "File with the token to show; SPARKHERD_TOKEN holds one itself.",
    "tls_ca": "File with the authority of the managers' certificates (PEM).",
    "tls_cert": "File with a certificate to show to managers (PEM).",
    "tls_key": "File with the key of --tls-cert (PEM).",
}


def manager_option(command: Decorated) -> Decorated:
    """`--manager`, and what to show to it."""
    for name, text in reversed(_CREDENTIALS.items()):
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            callback=_keep,
            expose_value=False,
            is_eager=True,
            envvar=f"SPARKHERD_{name.upper()}",
            metavar="FILE",
            help=text,
        )(command)
    return _manager_option(command)


_manager_option = click.option(
    "--manager",
    "client",
    callback=_client,
    metavar="URL",
    envvar="SPARKHERD_MANAGER",
    default=(DEFAULT_MANAGER,),
    show_default=True,
    multiple=True,
    help="Where a manager is; several, repeated or separated by commas, are tried in order.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
group_option = click.option(
    "--group",
    envvar="SPARKHERD_GROUP",
    required=True,
    metavar="GROUP",
    shell_complete=completers.groups,
    help="The group.",
)


def optional_group_option(help_text: str) -> Callable[[Decorated], Decorated]:
    """`--group` of commands that can do without."""
    return click.option(
        "--group", envvar="SPARKHERD_GROUP", metavar="GROUP", shell_complete=completers.groups, help=help_text
    )


group_argument = click.argument("group", metavar="GROUP", shell_complete=completers.groups)
task_argument = click.argument("task", metavar="TASK", shell_complete=completers.tasks)
tasks_argument = click.argument(
    "tasks", metavar="TASK...", nargs=-1, required=True, shell_complete=completers.tasks
)
worker_argument = click.argument("worker", metavar="WORKER", shell_complete=completers.workers)


def admin_options(command: Decorated) -> Decorated:
    """`--manager` and `--json`."""
    return manager_option(json_option(command))


def example(*lines: str) -> str:
    """The end of a command's help: how it is used, as one may type it."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
