"""Plans hold when the controllers themselves play them: every profile, round after round."""

from __future__ import annotations

import json
from random import Random

import restart_checker as checker
from clusters import Document
from failing_clusters import Judge, failing_cluster, replayed
from restart_checker import Demand
from understudy.controller.records import TopicPartition
from understudy.questions.restart import replay
from understudy.questions.restart.plan import plan
from understudy.questions.units import Broker, Cluster

CLUSTERS = 60


def savable(judge: Judge, *, is_kraft: bool) -> dict[TopicPartition, Demand]:
    found = {}
    for tp, (topic, partition) in judge.partitions.items():
        in_sync = judge.online(partition) & {*partition["state"]["isr"]}
        demand = Demand(frozenset(in_sync), len(in_sync) - judge.min_isr(topic))
        # A quorum controller takes no ISR with a fenced member, and leaves none behind.
        odd = len(in_sync) < len(partition["state"]["isr"])
        if demand.slack > 0 and not judge.before(tp).offline and not (odd and is_kraft):
            found[tp] = demand
    return found


def live(doc: Document) -> list[int]:
    return [
        broker["id"]
        for broker in doc["brokers"]
        if broker.get("alive", True)
        and not broker.get("fenced")
        and not broker.get("shutting_down")
    ]


def test_controllers_keep_min_isr_in_every_round() -> None:
    rng = Random(9)
    rounds_of_many = 0
    for number in range(CLUSTERS):
        doc = failing_cluster(rng, f"c{number}")
        for broker in doc["brokers"] if doc["mode"] == "kraft" else ():
            # Kafka refuses a broker that starts without a log directory.
            broker["log_dirs"] = broker.get("log_dirs") or [f"{broker['id']:021d}w"]
        judge = Judge(doc)
        demands = savable(judge, is_kraft=doc["mode"] == "kraft")
        up = live(doc)
        if len(up) < 2:
            continue
        known = Cluster(
            doc["cluster"],
            doc["snapshot_id"],
            doc["mode"],
            doc["controller"]["id"],
            {broker: Broker(alive=True) for broker in up},
        )
        found = plan(up, checker.conflicts(demands.values()))
        # Somebody has to be there to be elected.
        rounds = [each for each in found.rounds if len(each) < len(up)]
        events = [json.loads(text) for text in replay.scenario(known, rounds).events]
        last = 0
        for down in rounds:
            rounds_of_many += len(down) > 1
            after = replayed(doc, *events[: last + len(down) + 1])
            for tp in demands:
                topic, partition = judge.partitions[tp]
                there = judge.online(partition) - {*down}
                assert after[tp].leader in there, (doc, down, tp)
                assert len(there & {*after[tp].isr}) >= judge.min_isr(topic), (doc, down, tp)
            last += len(down) + 3
            back = replayed(doc, *events[:last])
            for tp, demand in demands.items():
                assert demand.pool <= {*back[tp].isr}, json.dumps([doc, down, tp, back[tp]])
    assert rounds_of_many > 20
