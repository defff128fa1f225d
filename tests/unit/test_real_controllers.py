"""Real controllers, each followed from its election to its end: what they logged, the replay does.

The recordings have the lines of the state-change log beside the znodes: transitions, and the
requests that were sent. Some of what a controller holds stands in no znode (a replica that is new,
who answered a deletion, an epoch that is only cached), so the replay goes on from case to case, and
starts anew only where the controller did, or where the cluster changed in a way no event tells.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clusters import rows_of
from kafka_answers import named, per_receiver
from understudy.controller.journal import Journal
from understudy.controller.zk import interpreter
from understudy.controller.zk.events import FAILOVER, ZkController
from understudy.controller.zk_legacy import interpreter as legacy_interpreter
from understudy.controller.zk_legacy.events import LegacyController
from understudy.controller.zk_legacy.journal import LegacyJournal

RECORDINGS = Path(__file__).parents[1] / "data" / "real"
LEGACY = "zk-1.0"
RUNS = {"zk-3.9": 82, "zk-2.8": 50, LEGACY: 30}  # run -> cases compared
# The answers of replicas to a deletion are no events of the recording; 1.0 is still waiting for
# some of them when the next broker starts.
UNTOLD = {"zk10-a-028", "zk10-a-029"}

Json = Any
Case = dict[str, Json]
Controller = ZkController | LegacyController
_LISTS = ("transitions", "requests", "request_partitions")


class Told:
    """What a controller did in one case, as the log has it and as the replay has it."""

    def __init__(self, case: Case, tables: dict[str, list[Case]], observed: list[Case]) -> None:
        self.is_clean: bool = case["clean"]
        self.tables = per_receiver(tables)
        self.observed = observed

    def logged(self, *what: str) -> Iterator[Case]:
        return (line for line in self.observed if line["what"] in what)

    def bodies(self, request: str) -> Iterator[Case]:
        return (row for row in self.tables["request_partitions"] if row["request"] == request)


def lines(run: str, file: str) -> list[Case]:
    with gzip.open(RECORDINGS / run / file, "rt", encoding="utf-8") as found:
        return [json.loads(line) for line in found]


@cache
def told(run: str) -> dict[str, Told]:
    """Every case of a run; one that was cut in two where the controller changed is one again."""
    observed = {_whole(line["case"]): line["observed"] for line in lines(run, "observed.jsonl.gz")}
    found: dict[str, Told] = {}
    for case, tables in followed(run):
        name = _whole(case["case"])
        if name in found:
            later = len(found[name].tables["transitions"]) + 1
            for table, rows in per_receiver(tables).items():
                found[name].tables[table] += [{**r, "step": r["step"] + later} for r in rows]
        elif name not in UNTOLD:
            found[name] = Told(case, tables, observed.get(name, []))
    return found


def _whole(name: str) -> str:
    return name.rstrip("ab")


def followed(run: str) -> Iterator[tuple[Case, dict[str, list[Case]]]]:
    controller: Controller | None = None
    unclean: dict[str, Json] = {}
    for case in lines(run, "cases.jsonl.gz"):
        before = case["before"]
        allowed = _unclean_settings(before)
        switched = any(unclean.get(name, each) != each for name, each in allowed.items())
        elected = case["events"][0]["type"] == FAILOVER
        fresh = _fresh(run, before, settled=not elected)
        if controller is None or elected or switched or _znodes(controller) != _znodes(fresh):
            controller = fresh
        unclean = allowed
        journal = controller.journal
        since = {table: len(getattr(journal, table)) for table in _LISTS}
        for event in case["events"]:
            controller.process(event)
        yield (
            case,
            {table: named(table, getattr(journal, table)[since[table] :]) for table in _LISTS},
        )


def _fresh(run: str, before: Case, *, settled: bool) -> Controller:
    if run == LEGACY:
        legacy = LegacyController(legacy_interpreter.load(rows_of(before)), LegacyJournal())
        if settled:
            legacy.settle()
        return legacy
    context = interpreter.load(rows_of(before))
    if settled:
        interpreter.settle(context)
    return ZkController(context, Journal())


def _znodes(controller: Controller) -> Json:
    if isinstance(controller, LegacyController):
        return controller.context.zookeeper.states
    return controller.context.znodes


def _unclean_settings(before: Case) -> dict[str, Json]:
    holders = {"": before, **{topic["name"]: topic for topic in before["topics"]}}
    key = "unclean.leader.election.enable"
    return {name: each.get("configs", {}).get(key) for name, each in holders.items()}


# --- The same facts from both sides ------------------------------------------------------------


def _name(row: Case) -> str:
    return f"{row['topic']}-{row['partition']}"


def transitions(of: Told) -> tuple[Counter[Json], Counter[Json]]:
    kinds = ("partition transition", "replica transition")
    logged = Counter(
        (line["partition"], line.get("replica"), line["from_state"], line["to_state"], ok)
        for ok in (True, False)
        for line in of.logged(*(kind if ok else f"{kind} failed" for kind in kinds))
    )
    ours = Counter(
        (_name(row), row["replica"], row["from_state"], row["to_state"], row["result"] == "ok")
        for row in of.tables["transitions"]
    )
    return logged, ours


def leaders_and_isrs(of: Told) -> tuple[Counter[Json], Counter[Json]]:
    logged = Counter(
        (
            *(line["broker"], line["partition"], *_record(body), tuple(body["replicas"])),
            *(tuple(body.get(f"{list_}Replicas") or ()) for list_ in ("adding", "removing")),
            *(body["isNew"], body.get("leaderRecoveryState") or 0),
        )
        for line in of.logged("LEADER_AND_ISR partition")
        for body in [line["body"]]
    )
    ours = Counter(
        (
            *(row["broker_id"], _name(row), *_our_record(row), tuple(row["replicas"])),
            *(tuple(row[list_] or ()) for list_ in ("adding", "removing")),
            *(row["is_new"], row["recovery"] or 0),
        )
        for row in of.bodies("LEADER_AND_ISR")
    )
    return logged, ours


def stops(of: Told) -> tuple[Counter[Json], Counter[Json]]:
    logged = Counter(
        (line["broker"], line["partition"], *line["body"].values())
        for line in of.logged("STOP_REPLICA partition")
    )
    ours = Counter(
        (row["broker_id"], _name(row), row["leader_epoch"], row["delete_partition"])
        for row in of.bodies("STOP_REPLICA")
    )
    return logged, ours


def updates(of: Told) -> tuple[Json, Json]:
    """Receivers and number of partitions, in order.

    A leader reports the ISRs of several partitions at once, the recording one by one: where there
    were such reports, only the numbers together can be compared.
    """
    logged = [
        (tuple(sorted(line["brokers"])), line["partitions"])
        for line in of.logged("UPDATE_METADATA")
    ]
    receivers: dict[tuple[int, int], list[int]] = {}
    for row in of.tables["requests"]:
        if row["request"] == "UPDATE_METADATA":
            step = (row["step"], row["partition_count"])
            receivers.setdefault(step, []).append(row["broker_id"])
    ours = [(tuple(sorted(brokers)), count) for (_, count), brokers in receivers.items()]
    if of.is_clean:
        return logged, ours
    return sum(count for _, count in logged), sum(count for _, count in ours)


def _record(body: Case) -> tuple[Json, ...]:
    version = body["partitionEpoch"] if "partitionEpoch" in body else body["zkVersion"]
    leader = (body["leader"], body["leaderEpoch"])
    return (body["controllerEpoch"], *leader, tuple(body["isr"]), version)


def _our_record(row: Case) -> tuple[Json, ...]:
    leader = (row["leader"], row["leader_epoch"])
    return (row["controller_epoch"], *leader, tuple(row["isr"]), row["partition_epoch"])


@pytest.mark.parametrize("run", RUNS)
def test_every_case_is_there(run: str) -> None:
    assert len(told(run)) == RUNS[run]


@pytest.mark.parametrize("compared", [transitions, leaders_and_isrs, stops, updates])
@pytest.mark.parametrize("run", ["zk-3.9", "zk-2.8"])
def test_a_controller_did_what_the_replay_does(
    run: str, compared: Callable[[Told], tuple[Json, Json]]
) -> None:
    assert different(compared, told(run).items()) == {}


# --- 1.0 -----------------------------------------------------------------------------------------


def test_a_legacy_controller_made_the_transitions_of_the_replay() -> None:
    """Its log has no line of its own for what failed."""

    def made(of: Told) -> tuple[Json, Json]:
        logged, ours = transitions(of)
        return logged, Counter({each: count for each, count in ours.items() if each[-1]})

    assert different(made, told(LEGACY).items()) == {}


def test_a_legacy_controller_sent_the_leaders_and_isrs_of_the_replay() -> None:
    """It logs those to brokers it has no connection to, as well; the replay sends none."""

    def sent(of: Told) -> tuple[Json, Json]:
        logged, ours = leaders_and_isrs(of)
        reached = {row["broker_id"] for row in of.tables["requests"]}
        return Counter({each: n for each, n in logged.items() if each[0] in reached}), ours

    assert different(sent, told(LEGACY).items()) == {}


def test_a_legacy_controller_told_the_metadata_of_the_replay() -> None:
    """Of ISRs that leaders changed it reads later: often in the next case, and only the last."""
    logged: set[Json] = set()
    ours: set[Json] = set()
    certain: set[Json] = set()
    for of in told(LEGACY).values():
        logged |= {
            (broker, line["partition"], *_record(line["body"]))
            for line in of.logged("UPDATE_METADATA partition")
            for broker in line["brokers"]
        }
        here = {
            (row["broker_id"], _name(row), *_our_record(row))
            for row in of.bodies("UPDATE_METADATA")
        }
        ours |= here
        certain |= here if of.is_clean else set()
    assert len(certain) > 100
    assert logged - ours == set()
    assert certain - logged == set()


def different(
    compared: Callable[[Told], tuple[Json, Json]], cases: Iterable[tuple[str, Told]]
) -> dict[str, Sequence[Json]]:
    found = {name: compared(of) for name, of in cases}
    return {name: both for name, both in found.items() if both[0] != both[1]}
