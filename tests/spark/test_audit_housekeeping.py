"""Pruning and compacting real places: what readers see stays, what nobody sees goes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clusters import Document
from commands import told
from histories import random_history
from understudy import auditing, housekeeping, publish, schemas, sources, superseding
from understudy.auditing import Asked
from understudy.errors import BadInputError
from understudy.questions.audit.rule_set import parse

START = datetime(2026, 5, 1, tzinfo=UTC)
FEW = Asked(parse('only = ["offline", "under-replicated", "rf-one", "unclean-election"]', "r"))


def load(spark: SparkSession, store: Path, folder: Path, docs: list[Document], day: int) -> None:
    path = folder / f"{day}.jsonl"
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
    found = sources.read(spark, [str(path)])
    run = publish.Run.start(
        "load",
        input_digest=found.input_digest,
        config_digest="",
        now=START + timedelta(days=day),
    )
    tables = {**found.tables(), "quarantine": found.quarantine}
    publish.publish(spark, str(store), run, tables, verdict="done")
    found.close()


def audit(spark: SparkSession, store: Path, out: Path, day: int) -> auditing.Done:
    given = auditing.look(spark, [str(store)])
    return auditing.run(spark, given, str(out), FEW, now=START + timedelta(days=day))


def shown(spark: SparkSession, root: Path, *names: str) -> dict[str, list[Any]]:
    return {
        name: sorted(
            publish.read(spark, str(root), name).drop("run_id", "findings_run").collect(), key=str
        )
        for name in names
    }


def directories(root: Path) -> set[str]:
    return {path.name for path in root.glob("*/run=*")}


@pytest.mark.slow
def test_a_place_is_kept_small_without_a_reader_noticing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    docs = random_history(Random(8), "a", 4)
    for day, batch in enumerate((docs[:2], docs[2:3])):
        load(spark, store, tmp_path, batch, day)
        audit(spark, store, out, day)
    audits = superseding.TABLES
    before, snapshots = shown(spark, out, *audits), shown(spark, store, *schemas.SNAPSHOT_TABLES)
    runs = publish.visible_runs(spark, str(out))
    *_, (verdict,) = runs.sort("run_id").select("verdict").collect()

    # Both runs are referred to by the newest ledger: none goes, whatever their age.
    left = out / "findings" / "run=20260101T000000000Z-deadbeef" / "_temporary"
    left.mkdir(parents=True)
    dry = told(capsys, 0, "runs", str(out), "--prune", "--older-than", "1s", "--dry-run")
    assert dry["pruned"]["first"] == [
        {"run_id": "20260101T000000000Z-deadbeef", "reason": housekeeping.UNFINISHED}
    ]
    assert left.exists()
    assert (
        told(capsys, 0, "runs", str(out), "--prune", "--older-than", "1s")["pruned"]["count"] == 1
    )
    assert not left.exists()
    assert shown(spark, out, *audits) == before

    # Made one, the others are hidden at once and deleted later.
    for place in (store, out):
        answer = told(capsys, 0, "runs", str(place), "--compact")
        assert (answer["compacted"]["runs"], answer["count"]) == (2, 1)
        assert len(directories(place)) > 1
        told(capsys, 0, "runs", str(place), "--prune", "--older-than", "0s")
        left_over = directories(place)
        seen = {name for name in left_over if not (place / "tombstones" / name).exists()}
        assert seen == {f"run={answer['compacted']['into']}"}
    assert shown(spark, out, *audits) == before
    assert shown(spark, store, *schemas.SNAPSHOT_TABLES) == snapshots
    page = told(capsys, 0, "report", str(out), "--html", str(tmp_path / "page.html"))
    assert (page["job"], page["verdict"]) == ("audit", verdict)

    # And it goes on from there: only what is new is judged.
    assert audit(spark, store, out, 10).judged == 0
    load(spark, store, tmp_path, docs[3:], 11)
    assert audit(spark, store, out, 12).judged == 1


def test_what_a_newer_release_wrote_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    load(spark, tmp_path / "store", tmp_path, random_history(Random(1), "a", 1), 0)
    root = str(tmp_path / "store")
    rows = publish.visible_runs(spark, root).collect()
    newer = [row.asDict() | {"run_id": "later", "schema_version": 99} for row in rows]
    frame = spark.createDataFrame(newer, schemas.RUNS)
    frame.write.parquet(f"{root}/runs/run=later")
    with pytest.raises(BadInputError, match="newer release") as caught:
        sources.read(spark, [root])
    assert caught.value.problems == ("run later: schema version 99",)


def test_what_an_older_release_wrote_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """It knew fewer tables, and fewer columns of those it knew."""
    found = random_history(Random(2), "a", 1)
    load(spark, tmp_path / "store", tmp_path, found, 0)
    audit(spark, tmp_path / "store", tmp_path / "new", 0)
    new, old = str(tmp_path / "new"), str(tmp_path / "old")
    run = publish.Run.start("audit", input_digest="ab" * 4, config_digest="", now=START)
    tables = {
        name: publish.read(spark, new, name).drop("run_id", "brokers_up")
        for name in ("findings", "exposure", "audited")
    }
    tables["audited"] = tables["audited"].withColumn("findings_run", F.lit(run.run_id))
    for name, table in tables.items():  # as it is: publishing asks for every column of today
        table.write.parquet(f"{old}/{name}/run={run.run_id}")
    counts = {name: table.count() for name, table in tables.items()}
    publish.commit(spark, old, run, counts, verdict="done")
    assert publish.read(spark, old, "audited").select("brokers_up").collect() == [(None,)]
    assert publish.read(spark, old, "changes").isEmpty()
    names = ("findings", "exposure")
    assert shown(spark, Path(old), *names) == shown(spark, Path(new), *names)
