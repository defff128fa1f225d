"""``understudy capture``: the state of a running cluster, asked for once, into a snapshot store."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from understudy.commands.storing import store
from understudy.commands.verb import Verb, answer, running
from understudy.errors import UsageError
from understudy.sources.forms import Wanted

if TYPE_CHECKING:
    from understudy.sources.content import Parsed

FORM: Final = "capture"
_DEFAULT_SECONDS: Final = 60.0
_SERVER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:,/\[\]]+):\d{1,5}")
_NO_CLIENT: Final = "a capture needs kafka-python and kazoo: pip install 'understudy[capture]'"


def _arguments(parser: argparse.ArgumentParser) -> None:
    whom = parser.add_mutually_exclusive_group(required=True)
    whom.add_argument("--bootstrap", metavar="HOST:PORT[,…]", help="brokers to ask")
    whom.add_argument(
        "--zookeeper", metavar="HOST:PORT[,…][/chroot]", help="the cluster's ZooKeeper"
    )
    parser.add_argument("--into", required=True, metavar="STORE", help="the snapshot store")
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="properties for TLS and SASL, as Kafka's own tools take them",
    )
    parser.add_argument("--cluster", metavar="NAME", help="a name instead of the cluster's id")
    parser.add_argument("--release", metavar="R", help="Kafka's release, where nobody tells it")
    parser.add_argument(
        "--metadata-version",
        metavar="V",
        help="inter.broker.protocol.version, where nobody tells it",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=_DEFAULT_SECONDS,
        metavar="SECONDS",
        help=f"give up after so long (default {_DEFAULT_SECONDS:g})",
    )


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d+(?:\.\d+)?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def _run(args: argparse.Namespace) -> int:
    Wanted(
        cluster=args.cluster, release=args.release, metadata_version=args.metadata_version
    ).check()
    _check_servers(args)
    parsed = _captured(args)

    from understudy import publish
    from understudy.report import loaded
    from understudy.sources import documents
    from understudy.sources.combine import combine

    with running("understudy capture", args) as (spark, progress):
        progress.doing("reading")
        source = args.bootstrap or args.zookeeper
        snapshots = combine([documents.part_of_parsed(spark, source, parsed)])
        told = store(
            spark,
            args,
            snapshots,
            progress,
            job=FORM,
            config_digest=publish.digest({}),
            force=False,
        )
    return answer(args, told, partial(loaded.as_text, did="Captured"))


def _check_servers(args: argparse.Namespace) -> None:
    option, said = "--bootstrap", args.bootstrap
    servers = said
    if said is None:
        option, said = "--zookeeper", args.zookeeper
        servers = said.partition("/")[0]
    for server in servers.split(","):
        if not _SERVER.fullmatch(server.strip()):
            raise UsageError(f"{option} {said}: {server!r} is no HOST:PORT")


def _captured(args: argparse.Namespace) -> Parsed:
    try:
        import kafka  # noqa: F401 - to see that it is there
        import kazoo  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(_NO_CLIENT) from None
    from understudy.sources.live import capturing

    now = datetime.now(UTC)
    return capturing.capture(
        bootstrap=args.bootstrap,
        zookeeper=args.zookeeper,
        command_config=args.command_config,
        naming=(args.cluster, args.release, args.metadata_version),
        form=FORM,
        now=now,
        seconds=args.timeout,
    )


VERB: Final = Verb(
    FORM,
    "Ask a running cluster for its state, once, and put that into a snapshot store.",
    "understudy capture --bootstrap b1:9092,b2:9092 --into store",
    _arguments,
    _run,
    more="""  understudy capture --bootstrap b1:9093 --command-config client.properties --into store
  understudy capture --zookeeper zk1:2181,zk2:2181/kafka --release 2.8 --into store

Nothing in the cluster is changed. ZooKeeper tells more than brokers do (epochs, topics being
deleted), and all of it from one instant.""",
)
