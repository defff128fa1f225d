"""What brings partitions back, against the controller that is given one broker after the other."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from clusters import Document
from failing_clusters import Judge, TopicPartition, failing_cluster, failure, replayed
from understudy import sources
from understudy.questions.recovery import recovery, returns

CLUSTERS = 300
DIRECTORY = "3XWsYVXnQCudXHtzgHCJnA"


def return_of(doc: Document, broker: int) -> list[Document]:
    """A broker comes back, having lost nothing; one that is still there fails first."""
    start: Document = {"type": "broker_startup", "brokers": [broker]}
    if broker in Judge(doc).registered:
        directories = {"log_dirs": {str(broker): [DIRECTORY]}, "clean": True}
        return [failure([broker]), start | (directories if doc["mode"] == "kraft" else {})]
    return [start if doc["mode"] == "zk" else {"type": "unfence", "brokers": [broker]}]


def expected(doc: Document) -> dict[TopicPartition, list[int]]:
    """Per partition that needs somebody back, those whose return alone gives a clean leader."""
    judge = Judge(doc)
    waiting = {}
    for tp, (topic, part) in judge.partitions.items():
        state, online = part["state"], judge.online(part)
        has_all = state["isr"] or state.get("elr", [])
        electable = [
            r for r in part["replicas"] if r in online and (r in has_all or judge.unclean(topic))
        ]
        if judge.before(tp).offline and not electable:
            waiting[tp] = part
    found: dict[TopicPartition, list[int]] = {tp: [] for tp in waiting}
    for broker in sorted(b["id"] for b in doc["brokers"]):
        after = replayed(doc, *return_of(doc, broker))
        for tp, part in waiting.items():
            # Where unclean elections are allowed, 1.0 forgets even the last member of an ISR, calls
            # its election unclean, and loses nothing.
            is_member = doc["release"] == "1.0" and broker in part["state"]["isr"]
            is_clean = is_member or after[tp].outcome != "elected_unclean"
            if broker in part["replicas"] and after[tp].leader == broker and is_clean:
                found[tp].append(broker)
    return found


def test_those_named_are_those_whose_return_helps(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(8)
    documents = [failing_cluster(rng, f"c{n}") for n in range(CLUSTERS)]
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    table = recovery(sources.read(spark, [str(path)])).persist()
    rows = {(row.cluster, row.topic, row.partition): row for row in table.collect()}
    wanted = {
        (doc["cluster"], *tp): brokers for doc in documents for tp, brokers in expected(doc).items()
    }
    assert {key: row.brokers for key, row in rows.items()} == wanted
    assert sum(map(bool, wanted.values())) > 20
    assert sum(not each for each in wanted.values()) > 2

    # What an administrator would get who does not want to wait, and whom Kafka obeys: in 1.0 there
    # is no such election, and while the leader of record is not known to be gone it is refused.
    by_cluster = {doc["cluster"]: doc for doc in documents}
    compared = 0
    for (name, topic, number), row in rows.items():
        doc = by_cluster[name]
        judge = Judge(doc)
        part = judge.partitions[topic, number][1]
        gone = {-1} if judge.kraft else {-1, *part["replicas"]} - judge.registered
        if doc["release"] == "1.0" or part["state"]["leader"] not in gone:
            continue
        compared += 1
        event = {"type": "unclean_election", "partitions": [f"{topic}-{number}"]}
        leader = replayed(doc, event)[topic, number].leader
        assert row.unclean_choice == (leader if leader in judge.online(part) else None), row
    assert compared > 10

    # All of them together: whoever is named is enough.
    for each in returns(table):
        sets = [b for (name, _, _), b in wanted.items() if name == each.cluster]
        assert each.partitions == len(sets)
        assert each.hopeless == sum(not b for b in sets)
        assert each.needed is not None
        assert all(set(b) & set(each.needed.brokers) for b in sets if b)
        assert each.needed.is_smallest
    table.unpersist()
