"""The worker's settings: one schema for flags, environment and file (protocol §1)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from protocol.messages.base import MAX_INT
from protocol.names import MAX_NAME_LENGTH
from protocol.worker_metadata import MAX_CAPACITY

_LEGAL = r"^(?!\.{1,2}(?![\s\S]))[A-Za-z0-9._-]+(?![\s\S])"
MAX_HEAP_MB = 1_048_576
_REMOTE = r"^sc://(?!.*;session_id=)[^/;?#@\s]+(?:/(?:;[^;=\s]+=[^;=\s]+)*)?(?![\s\S])"

Address = Annotated[
    str,
    Meta(
        pattern=r"^https?://([^/\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/\s:@\[\]]+)(:[0-9]{1,5})?/?$",
        description="a manager's URL, http://HOST:PORT",
    ),
]


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `sparkherd worker` can be told."""

    group: Annotated[
        str,
        Meta(
            pattern=_LEGAL,
            max_length=MAX_NAME_LENGTH,
            description=f"The group to join, 1 to {MAX_NAME_LENGTH} characters of [A-Za-z0-9._-].",
        ),
    ]
    manager: Annotated[
        tuple[Address, ...],
        Meta(min_length=1, description="URL of a manager, http://HOST:PORT; any one of a cluster will do."),
    ] = ("http://127.0.0.1:8470",)
    token_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="File with the token to show to managers; SPARKHERD_TOKEN holds one itself.",
            ),
        ]
        | None
    ) = None
    tls_ca: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="File with the authority of the managers' certificates (PEM);"
                " the machine's own without it.",
            ),
        ]
        | None
    ) = None
    tls_cert: (
        Annotated[
            str, Meta(min_length=1, description="File with the worker's certificate for managers (PEM).")
        ]
        | None
    ) = None
    tls_key: (
        Annotated[str, Meta(min_length=1, description="File with the key of --tls-cert (PEM).")] | None
    ) = None
    client_id: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_NAME_LENGTH, description="What member ids begin with."),
    ] = "worker"
    instance_id: (
        Annotated[
            str,
            Meta(
                pattern=_LEGAL,
                max_length=MAX_NAME_LENGTH,
                description="Makes it a static member: restarted within its session, it keeps its tasks.",
            ),
        ]
        | None
    ) = None
    assignor: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="An assignor to work with, NAME or module:Class, the preferred one first.",
        ),
    ] = ("sticky",)
    move_at_once: Annotated[
        int,
        Meta(
            ge=0,
            description="How many running tasks may move to a worker at the same time, when this one leads"
            " the group; the others run on meanwhile where they are; 0: all at once.",
        ),
    ] = 0
    session_timeout_ms: Annotated[
        int,
        Meta(ge=1, description="Silence after which the worker counts as lost and stops its queries, in ms."),
    ] = 10_000
    rebalance_timeout_ms: Annotated[
        int, Meta(ge=1, description="How long a rebalance waits for this worker to rejoin or let go, in ms.")
    ] = 60_000
    heartbeat_wait_ms: Annotated[
        int,
        Meta(
            ge=0,
            description="How long the manager may hold a heartbeat, in ms; 0 sends three a session instead.",
        ),
    ] = 3000
    lag_interval_ms: Annotated[
        int,
        Meta(
            ge=100,
            description="Pause between two looks at how far tasks are behind their Kafka topics, in ms; where"
            " looks take long, pauses are longer.",
        ),
    ] = 10_000
    stop_timeout_ms: Annotated[
        int, Meta(ge=0, description="How long the batch in flight may go on when a query is stopped, in ms.")
    ] = 30_000
    start_timeout_ms: Annotated[
        int,
        Meta(
            ge=1000,
            description="How long the start of a query may take before it is given up, in ms; once Spark has"
            " been asked to run the query, it is waited for.",
        ),
    ] = 180_000
    warm_up_timeout_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_INT,
            description="How long a small query may run on Spark before the worker joins, in ms: tasks that"
            " move there stand still for less time; 0: none. There is none with --isolate or --spark-remote,"
            " nor with --instance-id, as a static member's tasks wait for its return.",
        ),
    ] = 60_000
    checkpoint_root: Annotated[
        str,
        Meta(
            min_length=1,
            description="Folder, relative to the one the worker is started in, or URL for checkpoints; all"
            " workers of the group must see the same one.",
        ),
    ] = "checkpoints"
    spark_master: (
        Annotated[
            str,
            Meta(min_length=1, description="Spark's master URL; local[2] unless --spark-remote is given."),
        ]
        | None
    ) = None
    spark_remote: (
        Annotated[
            str,
            Meta(
                pattern=_REMOTE,
                description="URL of a Spark Connect server to run queries on, sc://HOST:PORT/;KEY=VALUE,"
                " without a session_id.",
            ),
        ]
        | None
    ) = None
    spark_conf: Annotated[dict[str, str], Meta(description="A setting of the Spark session.")] = {}
    packages: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^\s:,/]+:[^\s:,/]+:[^\s:,/]+(?![\s\S])")], ...],
        Meta(
            description="Maven coordinates, GROUP:ARTIFACT:VERSION, of what Spark is to have besides, as the"
            " connector of a source."
        ),
    ] = ()
    jars: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="A jar that Spark is to have besides, or a folder of them and of folders of them."),
    ] = ()
    repositories: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(https?|file):/\S+(?![\s\S])")], ...],
        Meta(description="URL of a Maven repository to look for --packages in, after Maven Central."),
    ] = ()
    jvm_timeout_ms: Annotated[
        int,
        Meta(
            ge=1000,
            description="Silence after which Spark's JVM counts as hung and is killed, in ms;"
            " longer than any pause of its garbage collector.",
        ),
    ] = 60_000
    isolate: Annotated[
        bool,
        Meta(description="Run each task in a JVM of its own: the death of one is the death of one."),
    ] = False
    isolate_memory_mb: (
        Annotated[
            int,
            Meta(
                ge=512,
                le=MAX_HEAP_MB,
                description="With --isolate, the heap of each task's JVM, in MiB; without it"
                " spark.driver.memory of --spark-conf, or 512.",
            ),
        ]
        | None
    ) = None
    allow_entrypoint: Annotated[
        tuple[str, ...],
        Meta(description="Module prefix from which tasks may run entry points; none may without it."),
    ] = ()
    allow_secret_env: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(?![\s\S])")], ...],
        Meta(
            description="Prefix of environment variables that tasks may use by ${env:NAME};"
            " none may without it."
        ),
    ] = ()
    secrets_dir: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="Folder of the files that tasks may use by ${file:PATH}; none may without it.",
            ),
        ]
        | None
    ) = None
    allow_jdbc: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9+._$-]+(?![\s\S])")], ...],
        Meta(
            description="What tasks may use of JDBC beside postgresql and sqlite: a database as in"
            " jdbc:mysql:, the class of a driver, or an option of a connection or of a table."
        ),
    ] = ()
    capacity: Annotated[
        float, Meta(gt=0, le=MAX_CAPACITY, description="Share of the load, relative to the other workers.")
    ] = 1.0
    max_tasks: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_INT,
                description="Tasks that this worker is given at most, whatever the assignor; any number when"
                " absent.",
            ),
        ]
        | None
    ) = None
    status_listen: (
        Annotated[
            str,
            Meta(
                pattern=r"^.+:\d{1,5}$",
                description="HOST:PORT of the worker's own endpoint (health, metrics, tasks), of this machine"
                " only; port 0 takes a free one; none when absent.",
            ),
        ]
        | None
    ) = None
    label: Annotated[dict[str, str], Meta(description="A label that tasks may ask for.")] = {}

    def __post_init__(self) -> None:
        """What contradicts itself is refused."""
        if self.spark_master is not None and self.spark_remote is not None:
            raise ValueError(
                "--spark-master and --spark-remote exclude each other:"
                " Spark runs in the worker's own JVM or on a Spark Connect server"
            )
        if self.spark_remote is not None and (self.packages or self.jars or self.repositories):
            raise ValueError(
                "--packages, --jars and --repositories are for a Spark of the worker's own;"
                " with --spark-remote, the Spark Connect server is to be started with them"
            )
        if self.spark_remote is not None and self.isolate:
            raise ValueError(
                "--isolate and --spark-remote exclude each other: with the latter, all tasks run in one JVM,"
                " the Spark Connect server's, which is not the worker's to start and end"
            )
        if self.isolate_memory_mb is not None and not self.isolate:
            raise ValueError(
                "--isolate-memory-mb goes with --isolate: a JVM that all tasks share has spark.driver.memory"
                " of --spark-conf"
            )

    @property
    def warm_up_s(self) -> float:
        """Seconds that warming the Spark of the worker may take, 0 where no query of a task will run on it.

        With `isolate` each has a JVM of its own; a Spark Connect server is not the worker's to warm. Nor is
        there time for it where the tasks of a static member wait for it, within its session.
        """
        has_own = not self.isolate and self.spark_remote is None
        return self.warm_up_timeout_ms / 1000 if has_own and self.instance_id is None else 0.0

    @property
    def wait_ms(self) -> int:
        """How long a heartbeat or claim is held: a third of the session at most (protocol §3.3)."""
        return min(self.heartbeat_wait_ms, self.session_timeout_ms // 3)
