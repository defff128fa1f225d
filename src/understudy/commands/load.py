"""``understudy load``: snapshots, in whatever form there are any, into a snapshot store."""

from __future__ import annotations

import argparse
from typing import Final

from understudy.commands.storing import store
from understudy.commands.verb import Verb, answer, running
from understudy.sources.forms import FORMS, Wanted, size


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files, directories or globs of any form below, or snapshot stores",
    )
    parser.add_argument("--into", required=True, metavar="STORE", help="the snapshot store")
    parser.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help="what the files are (default: recognised by content)",
    )
    parser.add_argument("--cluster", metavar="NAME", help="the cluster, where a form has no name")
    parser.add_argument(
        "--at", metavar="INSTANT", help="zxid:0x1f, offset:812 or a time (default: the newest)"
    )
    parser.add_argument(
        "--every-change", action="store_true", help="a snapshot after every change of a history"
    )
    parser.add_argument("--release", metavar="R", help="Kafka's release, where a form has none")
    parser.add_argument(
        "--metadata-version",
        metavar="V",
        help="metadata.version or inter.broker.protocol.version, where a form has none",
    )
    parser.add_argument(
        "--max-uncompressed",
        metavar="SIZE",
        help="refuse compressed files that are larger inside (default 4g, 1g for texts)",
    )
    parser.add_argument("--force", action="store_true", help="load again what was loaded before")


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, sources
    from understudy.report import loaded

    wanted = Wanted(
        form=args.form,
        cluster=args.cluster,
        release=args.release,
        metadata_version=args.metadata_version,
        at=args.at,
        every_change=args.every_change,
        max_uncompressed_bytes=None
        if args.max_uncompressed is None
        else size(args.max_uncompressed),
    )
    wanted.check()
    with running("understudy load", args, reads=args.paths) as (spark, progress):
        progress.doing("reading")
        snapshots = sources.load(spark, args.paths, wanted)
        told = store(
            spark,
            args,
            snapshots,
            progress,
            job="load",
            config_digest=publish.digest(wanted.settings()),
            force=args.force,
        )
    return answer(args, told, loaded.as_text)


_MORE: Final = "\n".join(
    [
        "  understudy load zookeeper/data --release 2.8 --at 2026-01-01T00:00:00Z --into store",
        "  understudy load kafka-logs/__cluster_metadata-0 --every-change --into store",
        "  understudy load texts --form describe --cluster shop-eu --into store",
        "",
        "forms:",
        *(f"  {form.name:<17} {form.what}" for form in FORMS.values()),
    ]
)

VERB: Final = Verb(
    "load",
    "Load snapshots, in whatever form there are any, into a snapshot store.",
    "understudy load 'exports/*.json.gz' --into store",
    _arguments,
    _run,
    more=_MORE,
)
