"""Audits again and again: late, out of order, twice; one audit of all shows the same."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clusters import Document, cluster, partition
from commands import told
from histories import quiet_history, random_history
from understudy import auditing, publish, sources, superseding
from understudy.auditing import Asked, Done
from understudy.questions.audit import audit as whole
from understudy.questions.audit import carrying, ledger
from understudy.questions.audit.rule_set import parse
from understudy.snapshot import Snapshots

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TABLES = superseding.TABLES


def file_of(folder: Path, name: str, docs: list[Document]) -> str:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
    return str(path)


@contextmanager
def given(spark: SparkSession, *paths: str) -> Iterator[auditing.Given]:
    found = auditing.look(spark, paths)
    yield found
    found.close()


def load(spark: SparkSession, store: str, path: str, number: int) -> None:
    found = sources.read(spark, [path])
    run = publish.Run.start(
        "load",
        input_digest=found.input_digest,
        config_digest="",
        now=NOW.replace(minute=number),
    )
    publish.publish(spark, store, run, found.tables(), verdict="done")
    found.close()


def audit(
    spark: SparkSession, out: str, *paths: str, asked: Asked | None = None, force: bool = False
) -> Done:
    with given(spark, *paths) as found:
        return auditing.run(spark, found, out, asked or Asked(), now=datetime.now(UTC), force=force)


def shown(spark: SparkSession, out: str) -> dict[str, list[Any]]:
    """What readers see, but for the names of runs."""
    return {
        name: sorted(
            publish.read(spark, out, name).drop("run_id", "findings_run").collect(), key=str
        )
        for name in TABLES
    }


FEW = Asked(
    parse(
        'only = ["offline", "rf-one", "under-replicated", "unclean-election", "bounced-broker",'
        ' "fast-double-failover"]',
        "few.toml",
    )
)


@pytest.mark.slow
def test_whatever_comes_when_in_the_end_it_is_as_all_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked, dice = Asked(), Random(36)
    docs = [doc for name in ("a", "b") for doc in random_history(dice, name, 7)]
    store, out, full = (str(tmp_path / name) for name in ("store", "out", "full"))
    # In order first, so that intervals are carried on; then what is late.
    late = [doc for doc in docs if doc["snapshot_id"] in ("s001", "s004")]
    batches = [
        [doc for doc in docs if doc["snapshot_id"] in ("s000", "s002", "s003")],
        [doc for doc in docs if doc["snapshot_id"] in ("s005", "s006")],
        late,
    ]
    judged = []
    for number, batch in enumerate(batches):
        load(spark, store, file_of(tmp_path, f"batch-{number}", batch), number)
        judged.append(audit(spark, out, store, asked=asked).judged)
    # Of the last batch the successors, too: s002 and s003 of s001, s005 and s006 of s004.
    assert judged == [6, 4, 2 * 6]
    again = audit(spark, out, store, asked=asked)
    assert (again.run_id, again.judged) == (None, 0)

    everything = audit(spark, full, file_of(tmp_path, "all", docs), asked=asked)
    assert again.standing == everything.standing
    assert everything.standing.verdict == auditing.FAILS
    expected = shown(spark, full)
    assert shown(spark, out) == expected


SILENCING = """
[[silence]]
rule = "rf-one"
until = 2026-01-01
reason = "until the next day"
"""


def test_where_little_happened_only_that_is_looked_at(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, dice = Asked(parse(SILENCING, "silencing.toml")), Random(7)
    histories = [quiet_history(dice, f"c{number:02}", 5) for number in range(12)]
    store, out, full = (str(tmp_path / name) for name in ("store", "out", "full"))
    looked_at, there = Counter[str](), 0

    def spied(there: Snapshots, todo: Sequence[ledger.History]) -> carrying.Carried | None:
        found = carried(there, todo)
        if found is not None:
            keys = found.in_question.group_by(found.in_question.column_names).aggregate([])
            looked_at.update(keys["cluster"].to_pylist())
            looked_at.update({history.cluster: 0 for history in found.todo})
        return found

    carried = carrying.carried
    monkeypatch.setattr(carrying, "carried", spied)
    for number, (begin, end) in enumerate(((0, 3), (3, 4), (4, 5))):
        new = [doc for docs in histories for doc in docs[begin:end]]
        load(spark, store, file_of(tmp_path, f"batch-{number}", new), number)
        assert audit(spark, out, store, asked=asked).judged == len(new)
        if number:
            there += sum(len(topic["partitions"]) for doc in new for topic in doc["topics"])
    assert len(looked_at) > len(histories) / 2
    assert 0 < looked_at.total() < there / 2
    monkeypatch.setattr(carrying, "carried", lambda *_: None)
    docs = [doc for docs in histories for doc in docs]
    audit(spark, full, file_of(tmp_path, "all", docs), asked=asked)
    expected, carried_on = shown(spark, full), shown(spark, out)
    for name in TABLES:
        assert carried_on[name] == expected[name], name


@pytest.fixture
def calm(spark: SparkSession, tmp_path: Path) -> list[list[Document]]:
    """Histories of clusters whose brokers and settings stay in the last snapshot as they were."""
    dice = Random(11)
    histories = [quiet_history(dice, f"c{number:02}", 4) for number in range(12)]
    path = file_of(tmp_path, "some", [doc for docs in histories for doc in docs])
    found = sources.read(spark, [path])
    todo = [
        replace(each, asked=each.asked[-1:], needed=each.asked[-3:-1], is_continued=True)
        for each in ledger.histories(whole.stored(found.snapshots), [])
    ]
    kept = [
        replace(each, kept=tuple(ledger.Entry(seen, (), "") for seen in each.needed))
        for each in todo
    ]
    carried = carrying.carried(found, kept)
    found.close()
    assert carried is not None
    names = {history.cluster for history in carried.todo}
    return [docs for docs in histories if docs[0]["cluster"] in names]


def test_where_little_happened_anywhere_only_that_is_judged(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calm: list[list[Document]],
) -> None:
    asked = Asked(parse(SILENCING, "silencing.toml"))
    store, out, other, full = (str(tmp_path / name) for name in ("store", "out", "other", "full"))
    load(spark, store, file_of(tmp_path, "first", [doc for docs in calm for doc in docs[:3]]), 0)
    audit(spark, out, store, asked=asked)
    shutil.copytree(out, other)
    load(spark, store, file_of(tmp_path, "next", [docs[3] for docs in calm]), 1)
    monkeypatch.setattr(whole, "judged", lambda *_: pytest.fail("everything was judged again"))
    assert audit(spark, out, store, asked=asked).judged == len(calm)
    monkeypatch.setattr(publish, "rows_at_hand", lambda *_: None)
    assert audit(spark, other, store, asked=asked).judged == len(calm)
    monkeypatch.undo()
    docs = [doc for docs in calm for doc in docs]
    audit(spark, full, file_of(tmp_path, "all", docs), asked=asked)
    expected, carried_on, by_spark = (shown(spark, place) for place in (full, out, other))
    for name in TABLES:
        assert carried_on[name] == expected[name], name
        assert by_spark[name] == expected[name], name


def test_one_more_snapshot_is_judged_as_with_all_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    docs = random_history(Random(36), "a", 4)
    some, every = (file_of(tmp_path, f"{n}", docs[:n]) for n in (3, 4))
    out = str(tmp_path / "out")
    assert audit(spark, out, some, asked=FEW).judged == 3
    assert audit(spark, out, every, asked=FEW).judged == 1
    carried_on = shown(spark, out)
    # Another audit at the same time, that knew of nothing when it began.
    assert audit(spark, out, every, asked=FEW, force=True).judged == 4
    assert shown(spark, out) == carried_on


QUIET = partition([1, 2, 3], (1, 4, [1, 2, 3]))
SHRUNK = partition([1, 2, 3], (1, 4, [1, 2]), partition_epoch=11)
GONE = partition([1], (1, 1, [1]), number=0)


def doc(name: str, at: str, topics: dict[str, list[Document]]) -> Document:
    made = cluster(topics, live=(1, 2, 3))
    return made | {"cluster": "shop", "snapshot_id": name, "taken_at": at}


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return file_of(
        tmp_path,
        "shop",
        [
            doc("s1", "2026-05-01T00:00:00Z", {"orders": [QUIET], "tmp-1": [GONE]}),
            doc("s2", "2026-05-02T00:00:00Z", {"orders": [SHRUNK], "tmp-1": [GONE]}),
            doc("s3", "2026-05-03T00:00:00Z", {"orders": [QUIET], "tmp-1": [GONE]}),
        ],
    )


RULES = """
only = ["under-replicated", "rf-one", "one-failure-from-offline"]

[rule.one-failure-from-offline]
severity = "error"

[[silence]]
topic = "tmp-.*"
until = 2026-05-01
reason = "goes away"

[[silence]]
rule = "one-failure-from-offline"
until = 2099-12-31
reason = "known"
"""


@pytest.mark.usefixtures("spark")
def test_the_verb_answers_and_writes_its_files(
    capsys: pytest.CaptureFixture[str], shop: str, tmp_path: Path
) -> None:
    rules, verdict, metrics = (tmp_path / name for name in ("r.toml", "v.json", "m.prom"))
    rules.write_text(RULES, encoding="utf-8")
    out = str(tmp_path / "out")
    answer = told(
        *(capsys, 4, "audit", shop, "--out", out, "--rules", str(rules)),
        *("--verdict", str(verdict), "--prometheus", str(metrics)),
    )
    assert (answer["verdict"], answer["errors"], answer["warnings"]) == ("warnings", 0, 3)
    assert answer["silenced"] == 4  # rf-one of the first day, and three that are known
    assert answer["expired_silences"] == ["topic tmp-.* (goes away)"]
    assert [row["rule"] for row in answer["rules"]] == ["rf-one", "under-replicated"]
    assert answer["exposure"]["count"] == 2
    (shrunk,) = (row for row in answer["exposure"]["first"] if row["topic"] == "orders")
    assert (shrunk["since"], shrunk["until"]) == ("2026-05-02T00:00:00Z", "2026-05-03T00:00:00Z")
    assert json.loads(verdict.read_text(encoding="utf-8"))["verdict"] == "warnings"
    said = metrics.read_text(encoding="utf-8").splitlines()
    assert 'kafka_under_replicated_partitions{cluster="shop"} 0' in said
    assert (
        'kafka_audit_findings{cluster="shop",rule="rf-one",severity="warning",topic="tmp-1"} 1'
    ) in said

    span = ("--since", "2026-05-03T00:00:00Z")
    later = told(capsys, 4, "audit", shop, "--out", out, "--rules", str(rules), *span)
    assert (later["run_id"], later["snapshots"], later["warnings"]) == (None, 1, 1)
    span = ("--since", "2030-01-01")
    none = told(capsys, 3, "audit", shop, "--out", out, "--rules", str(rules), *span)
    assert none["verdict"] == "cannot-decide"


def test_other_rules_have_a_ledger_of_their_own(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    out, none = str(tmp_path / "out"), Asked(parse('only = ["controller-count"]', "none.toml"))
    assert audit(spark, out, shop, asked=none).judged == 3
    assert shown(spark, out)["exposure"] == []
    assert audit(spark, out, shop, asked=FEW).judged == 3
    found = shown(spark, out)
    assert found["findings"]
    assert audit(spark, out, shop, asked=none).judged == 0
    assert shown(spark, out) == found


@pytest.mark.usefixtures("spark")
def test_an_incomplete_snapshot_never_looks_safe(
    spark: SparkSession, shop: str, tmp_path: Path
) -> None:
    found = sources.read(spark, [shop])
    tables = found.tables()
    lacking = {"complete": F.expr("snapshot_id != 's2'")}
    tables["snapshots"] = tables["snapshots"].withColumns(lacking)
    run = publish.Run.start("load", input_digest="ab" * 4, config_digest="", now=NOW)
    publish.publish(spark, str(tmp_path / "store"), run, tables, verdict="done")
    found.close()
    rules = Asked(parse('only = ["offline", "incomplete-snapshot", "under-min-isr"]', "r"))
    done = audit(spark, str(tmp_path / "out"), str(tmp_path / "store"), asked=rules)
    assert done.standing.verdict == auditing.CANNOT_DECIDE
    assert done.standing.incomplete == 1
