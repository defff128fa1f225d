"""The shipped sample is what its generator makes, and shows everything it promises to show."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from intervals import of_document, told
from understudy.sources import document as documents

DATA = Path(__file__).parents[2] / "data"
SAMPLE = DATA / "sample"
HEALTHY, TROUBLE, LATER = (
    SAMPLE / f"shop-eu-2026-03-01T{instant}.json" for instant in ("0900", "0930", "1000")
)
UNCLEAN = "unclean.leader.election.enable"

Partitions = dict[tuple[str, int], dict[str, Any]]


@pytest.fixture(scope="module")
def shop_eu() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shop_eu", DATA / "shop_eu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["shop_eu"] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def partitions(document: dict[str, Any], *, queued: bool = False) -> Partitions:
    return {
        (topic["name"], partition["partition"]): {**partition, "configs": topic["configs"]}
        for topic in document["topics"]
        if queued or not topic["queued_for_deletion"]
        for partition in topic["partitions"]
    }


def brokers(document: dict[str, Any], *, alive: bool) -> set[int]:
    return {broker["id"] for broker in document["brokers"] if broker["alive"] is alive}


def led(document: dict[str, Any]) -> Partitions:
    return {key: p for key, p in partitions(document).items() if p["state"] is not None}


def test_the_files_are_what_the_generator_makes(shop_eu: ModuleType) -> None:
    made = {name: shop_eu.render(doc) for name, doc in shop_eu.sample_documents(7).items()}
    shipped = {path.name: path.read_text(encoding="utf-8") for path in SAMPLE.iterdir()}
    assert made == shipped


def test_another_seed_makes_another_history(shop_eu: ModuleType) -> None:
    assert shop_eu.sample_documents(7) != shop_eu.sample_documents(8)


@pytest.mark.parametrize("path", [HEALTHY, TROUBLE, LATER], ids=lambda path: str(path.stem))
def test_the_parser_accepts_every_instant(path: Path) -> None:
    parsed = list(documents.parse(path.read_bytes()))
    assert [(one.problems, one.cluster, one.snapshot_id) for one in parsed] == [
        ((), "shop-eu", path.stem)
    ]
    content = parsed[0].content
    assert content is not None
    assert len(content.partitions) == len(partitions(load(path), queued=True))


@pytest.mark.parametrize("path", [HEALTHY, TROUBLE, LATER], ids=lambda path: str(path.stem))
def test_every_instant_is_a_possible_cluster(path: Path) -> None:
    document = load(path)
    known = {broker["id"] for broker in document["brokers"]}
    assert len(known) == 12
    assert len({broker["rack"] for broker in document["brokers"]}) == 3
    assert 38 <= len(document["topics"]) <= 45
    assert document["snapshot_id"] == path.stem
    ids = {topic["id"] for topic in document["topics"]}
    assert len(ids) == len(document["topics"])
    assert {len(topic_id) for topic_id in ids} == {22}
    assert {len(p["replicas"]) for p in partitions(document).values()} >= {1, 2, 3}
    for partition in partitions(document, queued=True).values():
        assert len(set(partition["replicas"])) == len(partition["replicas"])
        assert set(partition["replicas"]) <= known
        state = partition["state"]
        if state is not None:
            assert state["isr"]
            assert set(state["isr"]) <= set(partition["replicas"])
            assert state["leader"] in {-1, *partition["replicas"]}
            assert state["partition_epoch"] >= state["leader_epoch"] >= 0
            assert state["controller_epoch"] <= document["controller"]["epoch"]


def test_the_healthy_instant_has_nothing_offline() -> None:
    document = load(HEALTHY)
    assert not brokers(document, alive=False)
    assert led(document) == partitions(document, queued=True)
    assert all(p["state"]["leader"] in p["state"]["isr"] for p in led(document).values())
    shrunk = [p for p in led(document).values() if len(p["state"]["isr"]) < len(p["replicas"])]
    assert len(shrunk) == 1
    moved = [p for p in led(document).values() if p["state"]["leader"] != p["replicas"][0]]
    assert moved


@pytest.fixture(scope="module")
def trouble() -> dict[str, Any]:
    return load(TROUBLE)


def test_the_controller_died_with_its_broker(trouble: dict[str, Any]) -> None:
    assert brokers(trouble, alive=False) == {trouble["controller"]["id"]} == {104}


def test_the_dead_broker_still_leads_and_is_still_in_sync(trouble: dict[str, Any]) -> None:
    leads = [p for p in led(trouble).values() if p["state"]["leader"] == 104]
    follows = [
        p
        for p in led(trouble).values()
        if 104 in p["state"]["isr"] and p["state"]["leader"] not in (104, -1)
    ]
    assert len(leads) > 10
    assert len(follows) > 10


def test_one_live_broker_has_lost_a_disk(trouble: dict[str, Any]) -> None:
    lost = [p for p in partitions(trouble).values() if p.get("offline_dirs")]
    kept = [
        p
        for p in partitions(trouble).values()
        if 107 in p["replicas"] and not p.get("offline_dirs")
    ]
    assert {tuple(p["offline_dirs"]) for p in lost} == {(107,)}
    assert kept


def test_one_broker_is_shutting_down_and_leads_only_what_nobody_else_can(
    trouble: dict[str, Any],
) -> None:
    assert [b["id"] for b in trouble["brokers"] if b["shutting_down"]] == [110]
    still_led = [p for p in led(trouble).values() if p["state"]["leader"] == 110]
    assert still_led
    assert all(p["replicas"] == [110] for p in still_led)


def test_a_single_replica_topic_lives_on_the_dead_broker(trouble: dict[str, Any]) -> None:
    assert [key for key, p in led(trouble).items() if p["replicas"] == [104]]


@pytest.mark.parametrize("unclean", ["true", "false"])
def test_the_only_in_sync_replica_is_dead_with_unclean(
    trouble: dict[str, Any], unclean: str
) -> None:
    default = trouble["configs"][UNCLEAN]
    assert [
        key
        for key, p in led(trouble).items()
        if p["state"]["isr"] == [104]
        and len(p["replicas"]) > 1
        and p["configs"].get(UNCLEAN, default) == unclean
    ]


def test_some_partitions_were_never_led(trouble: dict[str, Any]) -> None:
    live = brokers(trouble, alive=True)
    never_led = [set(p["replicas"]) for p in partitions(trouble).values() if p["state"] is None]
    assert [replicas for replicas in never_led if not replicas & live]
    assert [replicas for replicas in never_led if replicas & live]


def test_two_topics_wait_for_deletion_and_only_one_can_go(trouble: dict[str, Any]) -> None:
    live = brokers(trouble, alive=True) - {110}
    deletable = {
        topic["name"]: all(set(p["replicas"]) <= live for p in topic["partitions"])
        for topic in trouble["topics"]
        if topic["queued_for_deletion"]
    }
    assert deletable == {"tmp.backfill-2025-11": True, "tmp.mirror-check": False}


def test_some_partitions_have_no_leader(trouble: dict[str, Any]) -> None:
    leaderless = [p for p in led(trouble).values() if p["state"]["leader"] == -1]
    assert {len(p["replicas"]) for p in leaderless} == {1, 3}
    assert all(p["state"]["isr"] == p["offline_dirs"] for p in leaderless)


def test_a_live_and_a_dead_leader_are_outside_their_isr(trouble: dict[str, Any]) -> None:
    outside = {
        p["state"]["leader"]
        for p in led(trouble).values()
        if p["state"]["leader"] not in (-1, *p["state"]["isr"])
    }
    assert outside == {103, 104}


def test_unclean_election_is_set_at_every_level(trouble: dict[str, Any]) -> None:
    assert trouble["configs"][UNCLEAN] == "false"
    assert [b["id"] for b in trouble["brokers"] if b["configs"].get(UNCLEAN) == "true"] == [112]
    assert {t["configs"].get(UNCLEAN) for t in trouble["topics"]} == {None, "true", "false"}


def test_later_another_broker_is_dead_and_in_sync_replicas_recover() -> None:
    document = load(LATER)
    assert brokers(document, alive=False) == {109}
    assert document["controller"] == {"id": 101, "epoch": 32}
    behind = [p for p in led(document).values() if not {104, 107, 110} & set(p["state"]["isr"])]
    assert [p for p in behind if {104, 107, 110} & set(p["replicas"])]
    assert [p for p in led(document).values() if 104 in p["state"]["isr"]]
    assert [key for key, p in partitions(document).items() if p.get("adding")] == [
        ("search-index", 0)
    ]
    assert [p for p in led(document).values() if p["state"]["recovery"] == 1]
    assert [p for p in led(document).values() if p["state"]["leader"] == -1]
    assert [t["name"] for t in document["topics"] if t["queued_for_deletion"]]


@pytest.mark.parametrize(("before", "after"), [(HEALTHY, TROUBLE), (TROUBLE, LATER)])
def test_epochs_tell_what_changed(before: Path, after: Path) -> None:
    """Every write raises the partition epoch; a new leader, unless edited, the leader epoch too."""
    earlier, later = partitions(load(before)), partitions(load(after))
    for key in earlier.keys() & later.keys():
        old, new = earlier[key]["state"], later[key]["state"]
        if old is None:
            continue
        assert new["leader_epoch"] >= old["leader_epoch"]
        assert new["partition_epoch"] >= old["partition_epoch"]
        assert new["controller_epoch"] >= old["controller_epoch"]
        written = new["partition_epoch"] > old["partition_epoch"]
        elected = new["leader_epoch"] > old["leader_epoch"]
        assert written or old == new
        assert written or not elected
        assert elected or new["leader"] == old["leader"]
    assert earlier != later
    epochs = [{b["id"]: b["epoch"] for b in load(path)["brokers"]} for path in (before, after)]
    assert all(epochs[1][broker] >= epoch for broker, epoch in epochs[0].items())


def test_only_what_was_edited_by_hand_breaks_the_rules() -> None:
    """The controller of 09:30 is dead, so what waits for the next one is no change that it made."""
    history = [of_document(load(path)) for path in (HEALTHY, TROUBLE, LATER)]
    compared = [found for _, _, named in told(history) for _, found in named]
    changed = [change for found in compared for change in found.changes]
    odd = {(c.topic, c.partition, c.field) for c in changed if c.reason == "unexplained"}
    assert odd == {("audit_log", n, field) for n in (2, 4) for field in ("isr", "partition_epoch")}
    assert not {change.reason for change in changed} & {"late", "unseen", "pending"}
    diverging = [
        {(each.topic, each.reason) for each in found.divergences if each.reason != "unexplained"}
        for found in compared
    ]
    assert diverging == [
        {
            *((topic, "pending") for topic in ("fraud-scores", "tmp.returns-debug")),
            *((topic, "deletion") for topic in ("tmp.backfill-2025-11", "tmp.mirror-check")),
        },
        set(),
    ]


def test_changes_of_the_sample_have_the_reasons_of_its_story() -> None:
    history = [of_document(load(path)) for path in (TROUBLE, LATER)]
    ((_, _, ((_, found),)),) = told(history)
    reasons = {(c.topic, c.partition): c.reason for c in found.changes if c.field == "leader"}
    assert reasons["__transaction_state", 10] == "broker_failure"
    assert reasons["delivery.tracking", 5] == "broker_failure"
    assert reasons["fraud-scores", 6] == "preferred_election"
    assert reasons["recommendations", 4] == "unclean_election"
    assert reasons["loyalty-points", 0] == "broker_startup"
