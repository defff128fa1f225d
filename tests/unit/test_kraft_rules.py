"""The rules of the quorum controller by name, one small cluster each.

Unless said otherwise: partition a-0 with replicas [1, 2, 3] in sync, led by 1 with leader epoch 5
and partition epoch 10, min.insync.replicas 2, every broker active.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_answers import replayed

MIGRATING, UNASSIGNED, LOST = (f"AAAAAAAAAAAAAAAAAAAA{end}" for end in ("AA", "AQ", "Ag"))
DIR_1, DIR_1B, DIR_2, DIR_3 = (f"{c * 4}EOvxdGT9ulWE9WrWQ"[:21] + "Q" for c in "EHLP")
DIRS = {1: [DIR_1], 2: [DIR_2], 3: [DIR_3]}

Json = Any
Tables = dict[str, list[dict[str, Json]]]


def partition(
    replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] | None = None, **said: Json
) -> dict[str, Any]:
    in_sync = replicas if isr is None else isr
    state = {
        "leader": in_sync[0] if in_sync else -1,
        "leader_epoch": 5,
        "isr": list(in_sync),
        "partition_epoch": 10,
    }
    names = ("leader", "elr", "last_known_elr", "recovery")
    state |= {name: said.pop(name) for name in names if name in said}
    return {"partition": 0, "replicas": list(replicas), **said, "state": state}


def snapshot(*partitions: dict[str, Any], release: str = "4.3", **said: Json) -> dict[str, Any]:
    fenced = said.pop("fenced", ())
    shutting_down = said.pop("shutting_down", ())
    dirs = said.pop("dirs", {})
    rows = partitions or (partition(),)
    return {
        "cluster": "c",
        "snapshot_id": "s",
        "mode": "kraft",
        "release": release,
        "controller": {"id": 100, "epoch": 1},
        "configs": {"min.insync.replicas": "2"} | said.pop("configs", {}),
        "brokers": [
            {
                "id": b,
                "epoch": 100 + b,
                "fenced": b in fenced,
                "shutting_down": b in shutting_down,
                "log_dirs": dirs.get(b, []),
            }
            for b in said.pop("brokers", (1, 2, 3, 4, 5))
        ],
        "topics": [
            {
                "name": "a",
                "partitions": [{**row, "partition": number} for number, row in enumerate(rows)],
                "configs": said.pop("topic_configs", {}),
            }
        ],
        **said,
    }


NOT_TOLD = {"directories", "broker_epoch", "rack", "log_dirs"}
UNCLEAN = {"unclean.leader.election.enable": "true"}
ELR: dict[str, Json] = {"elr_enabled": True}


def event(kind: str, **fields: Json) -> dict[str, Any]:
    return {"type": kind, **fields}


def fence(*brokers: int) -> dict[str, Any]:
    return event("fence", brokers=list(brokers))


def startup(*brokers: int, **fields: Json) -> dict[str, Any]:
    return event("broker_startup", brokers=list(brokers), **fields)


def records(tables: Tables) -> list[str]:
    """The records as short texts: the type or partition, and what each carries."""
    shown = []
    for row in tables["metadata_writes"]:
        carried = [
            f"{name}={_short(row[name])}" for name in row["changed"] if name != "directories"
        ]
        if row["broker_id"] is not None:
            carried = [c for c in carried if not c.startswith(("broker_epoch", "rack", "log_dirs"))]
        name = row["record"].removesuffix("Record")
        where = f"b{row['broker_id']}" if row["broker_id"] is not None else name
        if row["record"] == "PartitionChangeRecord":
            where = f"{row['topic']}-{row['partition']}"
        shown.append(" ".join([where, *sorted(carried)]))
    return shown


def _short(value: Json) -> str:
    return str(list(value)).replace(" ", "") if isinstance(value, tuple) else str(value)


def state(tables: Tables, number: int = 0) -> dict[str, Any]:
    rows = tables["partition_states"]
    return next(r for r in rows if (r["topic"], r["partition"]) == ("a", number))


def epochs(tables: Tables) -> tuple[int, int]:
    row = state(tables)
    return row["leader_epoch"], row["partition_epoch"]


def errors(tables: Tables) -> list[str | None]:
    return [row["error"] for row in tables["event_results"]]


# --- Epochs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata_version", "leader_epoch"), [("3.5-IV2", 6), ("3.6-IV0", 5), ("4.3-IV0", 5)]
)
def test_a_shrink_raises_the_leader_epoch_below_3_6_iv0(
    metadata_version: str, leader_epoch: int
) -> None:
    tables = replayed(snapshot(metadata_version=metadata_version), [fence(3)])
    assert state(tables)["isr"] == (1, 2)
    assert epochs(tables) == (leader_epoch, 11)


def test_an_expansion_does_not_raise_the_leader_epoch() -> None:
    doc = snapshot(partition(isr=(1, 2)), metadata_version="3.4-IV0")
    tables = replayed(doc, [event("isr_change", partition="a-0", isr=[1, 2, 3])])
    assert records(tables) == ["a-0 isr=[1,2,3]"]
    assert epochs(tables) == (5, 11)


def test_the_next_leader_is_first_in_the_replica_list_not_in_the_isr() -> None:
    doc = snapshot(partition((3, 1, 2), (2, 1, 3), leader=2), metadata_version="3.5-IV2")
    tables = replayed(doc, [event("controlled_shutdown", broker=2)])
    assert records(tables) == ["b2 shutting_down=True", "a-0 isr=[1,3] leader=3"]


@pytest.mark.parametrize(
    ("release", "metadata_version", "again"),
    [("3.7", "3.5-IV2", ["a-0 leader=-1"]), ("3.8", "3.5-IV2", []), ("3.7", "3.7-IV4", [])],
)
def test_a_leaderless_partition_fenced_again(
    release: str, metadata_version: str, again: list[str]
) -> None:
    doc = snapshot(partition((1,)), release=release, metadata_version=metadata_version)
    tables = replayed(doc, [event("controlled_shutdown", broker=1), fence(1)])
    first = ["b1 shutting_down=True", "a-0 leader=-1"]
    assert records(tables) == [*first, *again, "b1 fenced=True"]


# --- Without eligible leader replicas ----------------------------------------------------------


def test_the_last_member_of_an_isr_stays_without_elr() -> None:
    doc = snapshot(partition(isr=(1,)))
    tables = replayed(doc, [fence(1)])
    assert (state(tables)["leader"], state(tables)["isr"]) == (-1, (1,))
    assert epochs(tables) == (6, 11)
    (row,) = tables["decisions"]
    assert row["candidates"] == ((1, "leaving"), (2, "not_in_elr"), (3, "not_in_elr"))
    assert (row["chosen"], row["clean"], row["strategy"]) == (None, None, "online")


@pytest.mark.parametrize(("release", "leader"), [("3.8", -1), ("3.9", 2), ("4.3", 2)])
def test_the_unclean_setting_counts_from_3_9_on(release: str, leader: int) -> None:
    doc = snapshot(partition(isr=(1,)), release=release, topic_configs=UNCLEAN)
    row = state(replayed(doc, [fence(1)]))
    assert row["leader"] == leader
    if leader == 2:
        assert (row["isr"], row["recovery"], row["outcome"]) == ((2,), 1, "elected_unclean")


def test_recovery_is_not_recorded_below_3_2() -> None:
    doc = snapshot(
        partition(isr=(1,)), release="3.9", metadata_version="3.1-IV0", topic_configs=UNCLEAN
    )
    tables = replayed(doc, [fence(1)])
    assert records(tables) == ["a-0 isr=[2] leader=2", "b1 fenced=True"]
    assert tables["metadata_writes"][-1]["record"] == "FenceBrokerRecord"


def test_the_unclean_setting_of_the_controllers_own_broker_counts() -> None:
    doc = snapshot(partition(isr=(1,)), brokers=(1, 2, 3))
    doc["brokers"][1]["configs"] = UNCLEAN
    doc["controller"] = {"id": 3, "epoch": 1}
    assert state(replayed(doc, [fence(1)]))["leader"] == -1
    failover = event("controller_failover", controller=2)
    tables = replayed(doc, [failover, fence(1)])
    assert state(tables)["leader"] == 2
    assert tables["decisions"][0]["unclean_allowed_by"] == "broker"


def test_an_unclean_setting_with_blanks_is_not_true_to_the_quorum_controller() -> None:
    doc = snapshot(partition(isr=(1,)), topic_configs={"unclean.leader.election.enable": " true"})
    assert state(replayed(doc, [fence(1)]))["leader"] == -1


def test_brokers_that_die_together_are_fenced_one_after_the_other() -> None:
    doc = snapshot(partition(isr=(1, 2)))
    tables = replayed(doc, [event("broker_failure", brokers=[1, 2])])
    assert records(tables) == [
        "a-0 isr=[2] leader=2", "b1 fenced=True", "a-0 leader=-1", "b2 fenced=True",
    ]  # fmt: skip
    assert epochs(tables) == (7, 12)


def test_a_failover_writes_nothing() -> None:
    tables = replayed(snapshot(fenced=(1,)), [event("controller_failover")])
    assert tables["metadata_writes"] == tables["event_results"] == []
    assert state(tables)["outcome"] == "unchanged"


# --- Eligible leader replicas ------------------------------------------------------------------


def test_the_last_member_of_an_isr_becomes_eligible() -> None:
    doc = snapshot(partition(isr=(1,)), **ELR)
    row = state(replayed(doc, [fence(1)]))
    assert (row["leader"], row["isr"], row["elr"], row["last_known_elr"]) == (-1, (), (1,), (1,))


def test_a_clean_return_leads_from_the_elr() -> None:
    doc = snapshot(partition(isr=(1,)), **ELR)
    tables = replayed(doc, [fence(1), event("unfence", brokers=[1])])
    row = state(tables)
    assert (row["leader"], row["isr"], row["elr"], row["last_known_elr"]) == (1, (1,), (), ())
    assert row["recovery"] == 0
    assert tables["decisions"][-1]["reason"].startswith("the ISR is empty")


def test_an_eligible_replica_that_is_alive_takes_over_at_once() -> None:
    doc = snapshot(partition(isr=(1,), elr=[2]), **ELR)
    tables = replayed(doc, [fence(1)])
    assert records(tables) == ["a-0 elr=[1] isr=[2] leader=2", "b1 fenced=True"]
    assert tables["decisions"][0]["clean"] is True


def test_two_of_two_die_and_both_stay_eligible() -> None:
    doc = snapshot(partition(isr=(1, 2)), **ELR)
    row = state(replayed(doc, [fence(1, 2)]))
    assert (row["isr"], row["elr"], row["last_known_elr"]) == ((), (1, 2), (2,))


def test_only_an_eligible_replica_brings_a_partition_back() -> None:
    doc = snapshot(**ELR)
    row = state(replayed(doc, [fence(1, 2, 3), event("unfence", brokers=[1])]))
    assert (row["leader"], set(row["elr"])) == (-1, {2, 3})


def test_after_unclean_restarts_the_last_known_leader_leads() -> None:
    doc = snapshot(dirs=DIRS, **ELR)
    tables = replayed(doc, [fence(1, 2, 3), startup(1), startup(2), startup(3)])
    row = state(tables)
    assert (row["leader"], row["isr"], row["elr"], row["recovery"]) == (3, (3,), (), 1)
    assert tables["decisions"][-1]["clean"] is False
    assert tables["decisions"][-1]["unclean_allowed_by"] is None


def test_a_restart_after_a_clean_shutdown_keeps_the_elr() -> None:
    doc = snapshot(partition(isr=(1,)), dirs=DIRS, **ELR)
    tables = replayed(doc, [fence(1), startup(1, clean=True)])
    assert (state(tables)["leader"], state(tables)["recovery"]) == (1, 0)


def test_the_isr_at_min_isr_empties_the_elr() -> None:
    doc = snapshot(partition(isr=(1,), elr=[2]), **ELR)
    tables = replayed(doc, [event("isr_change", partition="a-0", isr=[1, 2])])
    assert records(tables) == ["a-0 elr=[] isr=[1,2]"]


def test_min_isr_is_bounded_by_the_replicas_of_partition_0() -> None:
    big, small = partition(), partition((1,))
    doc = snapshot(big, small, configs={"min.insync.replicas": "9"}, **ELR)
    assert state(replayed(doc, [fence(3)]))["elr"] == (3,)
    doc = snapshot(small, big, configs={"min.insync.replicas": "9"}, **ELR)
    assert state(replayed(doc, [fence(3)]), 1)["elr"] == ()


def test_an_elr_is_stored_in_the_order_of_a_java_hash_set() -> None:
    doc = snapshot(
        partition((17, 2, 1, 33), (17, 33)),
        brokers=(17, 2, 1, 33),
        topic_configs={"min.insync.replicas": "4"},
        **ELR,
    )
    assert state(replayed(doc, [fence(33, 17)]))["elr"] == (33, 17)


@pytest.mark.parametrize(("release", "leader"), [("4.0", 1), ("4.1", -1), ("4.3", -1)])
def test_4_0_elects_the_last_known_leader_even_fenced(release: str, leader: int) -> None:
    lost = partition(isr=(), last_known_elr=[1])
    doc = snapshot(lost, release=release, fenced=(1,), topic_configs=UNCLEAN, **ELR)
    doc["brokers"] = [b for b in doc["brokers"] if b["id"] == 1]
    tables = replayed(doc, [event("auto_unclean_election")])
    assert state(tables)["leader"] == leader


@pytest.mark.parametrize(
    ("release", "last_known"), [("4.0", (-1,)), ("4.1.0", (-1,)), ("4.1.1", ()), ("4.3", ())]
)
def test_the_last_known_leader_of_a_partition_that_had_none(
    release: str, last_known: tuple[int, ...]
) -> None:
    doc = snapshot(partition((1,), leader=-1), release=release, **ELR)
    assert state(replayed(doc, [fence(1)]))["last_known_elr"] == last_known


def test_with_elr_off_a_left_over_elr_goes_and_the_last_known_leader_stays() -> None:
    doc = snapshot(partition(isr=(1, 2), elr=[3], last_known_elr=[1]))
    tables = replayed(doc, [fence(2)])
    assert records(tables)[0] == "a-0 elr=[] isr=[1]"
    assert state(tables)["last_known_elr"] == (1,)


@pytest.mark.parametrize(("release", "elr"), [("4.2", ()), ("4.3", (2,))])
def test_before_4_3_assigning_a_directory_empties_the_elr(
    release: str, elr: tuple[int, ...]
) -> None:
    doc = snapshot(partition(isr=(1,), elr=[2]), release=release, dirs={1: [DIR_1]}, **ELR)
    tables = replayed(doc, [event("assign_dirs", broker=1, partitions={"a-0": DIR_1})])
    assert state(tables)["elr"] == elr
    assert state(tables)["directories"] == (DIR_1, MIGRATING, MIGRATING)


def test_a_last_known_leader_that_is_no_replica_makes_kafka_fail() -> None:
    doc = snapshot(partition(isr=(), last_known_elr=[4]), **ELR)
    tables = replayed(doc, [event("preferred_election", partitions=["a-0"])])
    assert tables["metadata_writes"] == []
    assert errors(tables) == ["UNKNOWN_SERVER_ERROR"]
    tables = replayed(doc, [event("reassign", partitions={"a-0": [1, 2]})])
    (row,) = tables["event_results"]
    assert (row["topic"], row["error"]) == ("a", "UNKNOWN_SERVER_ERROR")


# --- Brokers -----------------------------------------------------------------------------------


def test_a_broker_that_leads_nothing_shuts_down_at_once() -> None:
    tables = replayed(snapshot(), [event("controlled_shutdown", broker=3)])
    assert records(tables) == ["a-0 isr=[1,2]", "b3 fenced=True"]


def test_the_second_heartbeat_of_a_shutdown_fences() -> None:
    shutdown = event("controlled_shutdown", broker=1)
    tables = replayed(snapshot(), [shutdown, shutdown])
    assert records(tables) == ["b1 shutting_down=True", "a-0 isr=[2,3] leader=2", "b1 fenced=True"]


def test_a_new_controller_takes_a_shutdown_up_anew() -> None:
    doc = snapshot(partition((1,)), shutting_down=(1,))
    shutdown = event("controlled_shutdown", broker=1)
    tables = replayed(doc, [shutdown])
    assert records(tables) == ["a-0 leader=-1"]


def test_below_3_3_iv3_a_controlled_shutdown_is_not_recorded() -> None:
    doc = snapshot(release="3.9", metadata_version="3.3-IV2")
    tables = replayed(doc, [event("controlled_shutdown", broker=1)])
    assert records(tables) == ["a-0 isr=[2,3] leader=2"]
    assert not tables["broker_states"][0]["shutting_down"]


def test_a_fenced_broker_in_controlled_shutdown_can_be_unfenced_and_elected() -> None:
    doc = snapshot(partition((1,), leader=-1), fenced=(1,), shutting_down=(1,))
    tables = replayed(doc, [event("unfence", brokers=[1])])
    assert records(tables) == ["b1 fenced=False", "a-0 leader=1"]
    broker = tables["broker_states"][0]
    assert (broker["fenced"], broker["shutting_down"]) == (False, True)


def test_unregistering_leaves_the_replica_lists_alone() -> None:
    tables = replayed(snapshot(), [event("unregister", brokers=[1])])
    assert records(tables) == ["a-0 isr=[2,3] leader=2", "b1"]
    assert state(tables)["replicas"] == (1, 2, 3)
    assert [b["broker_id"] for b in tables["broker_states"]] == [2, 3, 4, 5]


@pytest.mark.parametrize(("release", "isr"), [("3.9", (1, 2, 3)), ("4.0", (1, 2))])
def test_a_registration_cleans_the_isr_from_4_0_on(release: str, isr: tuple[int, ...]) -> None:
    doc = snapshot(release=release, metadata_version="3.6-IV0", fenced=(3,))
    assert state(replayed(doc, [startup(3)]))["isr"] == isr


def test_a_registration_takes_the_next_epoch_when_it_is_accepted() -> None:
    doc = snapshot(metadata_version="3.6-IV0", fenced=(1, 2))
    tables = replayed(doc, [startup(3, 1, 2, epochs=[None, 300, None])])
    by_id = {b["broker_id"]: b["broker_epoch"] for b in tables["broker_states"]}
    assert (by_id[1], by_id[2], by_id[3]) == (300, 301, 103)
    assert errors(tables) == ["DUPLICATE_BROKER_REGISTRATION"]


@pytest.mark.parametrize(
    "log_dirs", [[], [LOST], [DIR_1, DIR_1], [DIR_2]], ids=["none", "reserved", "twice", "taken"]
)
def test_directories_no_broker_may_register_with(log_dirs: list[str]) -> None:
    doc = snapshot(fenced=(1,), dirs={2: [DIR_2]})
    tables = replayed(doc, [startup(1, log_dirs={"1": log_dirs})])
    assert errors(tables) == ["INVALID_REGISTRATION"]
    assert tables["metadata_writes"] == []


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        ("fence", {"brokers": [9]}, "UNKNOWN_SERVER_ERROR"),
        ("unfence", {"brokers": [9]}, "STALE_BROKER_EPOCH"),
        ("unregister", {"brokers": [9]}, "BROKER_ID_NOT_REGISTERED"),
        ("controlled_shutdown", {"broker": 9}, "STALE_BROKER_EPOCH"),
        ("log_dir_failure", {"broker": 9, "dirs": [DIR_1]}, "STALE_BROKER_EPOCH"),
    ],
)
def test_a_broker_nobody_registered(kind: str, fields: dict[str, Any], error: str) -> None:
    tables = replayed(snapshot(), [event(kind, **fields), event("broker_failure", brokers=[9])])
    (row,) = tables["event_results"]
    assert (row["error"], row["broker_id"], row["topic"]) == (error, 9, None)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("broker_change", {"live": {}}),
        ("stop_replica_response", {"broker": 1, "partitions": []}),
        ("unclean_enabled", {}),
        ("log_dir_failure", {"broker": 1, "partitions": ["a-0"]}),
    ],
)
def test_what_only_zookeeper_mode_knows_is_unsupported(kind: str, fields: dict[str, Any]) -> None:
    tables = replayed(snapshot(), [event(kind, **fields)])
    (row,) = tables["event_results"]
    assert row == {
        "event": 1, "event_type": kind, "topic": None, "partition": None,
        "error": "UNSUPPORTED_VERSION", "broker_id": None,
    }  # fmt: skip


# --- Directories -------------------------------------------------------------------------------


def test_a_failed_directory_costs_leadership_and_isr_but_not_the_broker() -> None:
    in_dir_1 = partition(directories=[DIR_1, DIR_2, DIR_3])
    elsewhere = partition(directories=[DIR_1B, DIR_2, DIR_3])
    doc = snapshot(in_dir_1, elsewhere, dirs={1: [DIR_1, DIR_1B], 2: [DIR_2], 3: [DIR_3]})
    tables = replayed(doc, [event("log_dir_failure", broker=1, dirs=[DIR_1])])
    assert records(tables) == ["a-0 isr=[2,3] leader=2", "b1"]
    assert tables["broker_states"][0]["log_dirs"] == (DIR_1B,)
    assert state(tables, 1)["outcome"] == "unchanged"


def test_losing_the_last_directory_is_read_as_no_change() -> None:
    doc = snapshot(partition(directories=[DIR_1, DIR_2, DIR_3]), dirs={1: [DIR_1]})
    tables = replayed(doc, [event("log_dir_failure", broker=1, dirs=[DIR_1])])
    assert tables["metadata_writes"][-1]["log_dirs"] == ()
    assert "log_dirs" in tables["metadata_writes"][-1]["changed"]
    assert tables["broker_states"][0]["log_dirs"] == (DIR_1,)


def test_a_replica_in_a_lost_directory_may_not_lead() -> None:
    doc = snapshot(partition(isr=(2, 1), directories=[LOST, DIR_2, DIR_3]), dirs={2: [DIR_2]})
    tables = replayed(doc, [fence(2)])
    assert state(tables)["leader"] == -1
    assert (1, "log_dir_offline") in tables["decisions"][0]["candidates"]


def test_assigning_to_an_offline_directory_takes_two_records() -> None:
    doc = snapshot(partition(directories=[DIR_1, DIR_2, DIR_3]), dirs={1: [DIR_1]})
    tables = replayed(doc, [event("assign_dirs", broker=1, partitions={"a-0": DIR_1B})])
    assert [sorted(w["changed"]) for w in tables["metadata_writes"]] == [
        ["directories"], ["isr", "leader"],
    ]  # fmt: skip
    assert epochs(tables) == (6, 12)


def test_below_3_7_iv2_nobody_knows_of_directories() -> None:
    doc = snapshot(metadata_version="3.7-IV1")
    events = [
        event("assign_dirs", broker=1, partitions={"a-0": DIR_1}),
        event("log_dir_failure", broker=1, dirs=[DIR_1]),
        event("reassign", partitions={"a-0": [4, 2, 3]}),
    ]
    tables = replayed(doc, events)
    assert errors(tables)[0] == "UNSUPPORTED_VERSION"
    assert state(tables)["directories"] == (MIGRATING,) * 4
    assert "directories" not in tables["metadata_writes"][0]["changed"]


def test_a_heartbeat_in_controlled_shutdown_also_reports_directories() -> None:
    doc = snapshot(
        partition((1,), directories=[DIR_1]), shutting_down=(1,), dirs={1: [DIR_1, DIR_1B]}
    )
    tables = replayed(doc, [event("log_dir_failure", broker=1, dirs=[DIR_1])])
    assert records(tables) == ["a-0 leader=-1", "a-0 leader=-1", "b1"]
    assert epochs(tables) == (7, 12)


# --- Reassignment ------------------------------------------------------------------------------


def test_a_reassignment_starts_with_one_record_and_no_new_leader_epoch() -> None:
    tables = replayed(snapshot(), [event("reassign", partitions={"a-0": [1, 2, 4]})])
    assert records(tables) == ["a-0 adding=[4] removing=[3] replicas=[1,2,4,3]"]
    assert epochs(tables) == (5, 11)


def test_a_reassignment_completes_with_the_isr() -> None:
    events = [
        event("reassign", partitions={"a-0": [4, 2, 3]}),
        event("isr_change", partition="a-0", isr=[1, 2, 3, 4]),
    ]
    tables = replayed(snapshot(), events)
    row = state(tables)
    assert (row["leader"], row["isr"], row["replicas"]) == (4, (2, 3, 4), (4, 2, 3))
    assert (row["adding"], row["removing"]) == ((), ())
    assert epochs(tables) == (6, 12)
    assert errors(tables) == [None, "NEW_LEADER_ELECTED"]


@pytest.mark.parametrize(
    ("release", "isr"), [("3.7", (1, 4)), ("3.8", (1, 3, 4)), ("4.2", (1, 3, 4)), ("4.3", (1, 4))]
)
def test_who_has_to_be_in_sync_to_complete(release: str, isr: tuple[int, ...]) -> None:
    doc = snapshot(partition(isr=(1, 3)), release=release)
    events = [
        event("reassign", partitions={"a-0": [1, 2, 4]}),
        event("isr_change", partition="a-0", isr=[1, 3, 4]),
    ]
    row = state(replayed(doc, events))
    assert (row["isr"], bool(row["adding"])) == (isr, len(isr) == 3)


@pytest.mark.parametrize(
    ("release", "removing"), [("3.7", ()), ("3.8", (3,)), ("4.2", (3,)), ("4.3", (3,))]
)
def test_removing_a_replica_while_another_is_behind(
    release: str, removing: tuple[int, ...]
) -> None:
    doc = snapshot(partition(isr=(1, 3)), release=release)
    tables = replayed(doc, [event("reassign", partitions={"a-0": [1, 2]})])
    assert state(tables)["removing"] == removing


@pytest.mark.parametrize(
    ("target", "written", "leader_epoch"),
    [
        ([1, 2], "a-0 isr=[1,2] leader=1 replicas=[1,2]", 6),
        ([3, 2, 1], "a-0 replicas=[3,2,1]", 5),
    ],
)
def test_a_reassignment_that_is_complete_at_once(
    target: list[int], written: str, leader_epoch: int
) -> None:
    tables = replayed(snapshot(), [event("reassign", partitions={"a-0": target})])
    assert records(tables) == [written]
    assert epochs(tables) == (leader_epoch, 11)


def test_a_superseding_reassignment_starts_from_the_merged_list() -> None:
    doc = snapshot(partition((1, 2, 4, 3), (1, 2, 3), adding=[4], removing=[3]))
    tables = replayed(doc, [event("reassign", partitions={"a-0": [1, 2, 5]})])
    row = state(tables)
    assert (row["replicas"], row["adding"], row["removing"]) == ((1, 2, 5, 3, 4), (5,), (3, 4))
    tables = replayed(
        doc,
        [
            event("reassign", partitions={"a-0": [1, 2, 5]}),
            event("cancel_reassignment", partitions=["a-0"]),
        ],
    )
    assert state(tables)["replicas"] == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("configs", "error"), [({}, "INVALID_REPLICA_ASSIGNMENT"), (UNCLEAN, None)]
)
def test_cancelling_when_only_new_replicas_are_in_sync(
    configs: dict[str, str], error: str | None
) -> None:
    doc = snapshot(partition((1, 2, 4), (4,), adding=[4]), topic_configs=configs, release="4.3")
    tables = replayed(doc, [event("cancel_reassignment", partitions=["a-0"])])
    assert errors(tables) == [error]
    if error is None:
        assert (state(tables)["isr"], state(tables)["leader"]) == ((1,), 1)


def test_refused_reassignments() -> None:
    asked = {"a-0": [1, 9], "a-9": [1], "b-0": [1]}
    events = [
        event("reassign", partitions=asked),
        event("reassign", partitions={"a-0": []}),
        event("reassign", partitions={"a-0": [1, 1]}),
        event("reassign", partitions={"a-0": [1]}, allow_replication_factor_change=False),
        event("cancel_reassignment", partitions=["a-0"]),
    ]
    assert errors(replayed(snapshot(), events)) == [
        "INVALID_REPLICA_ASSIGNMENT", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION",
        "INVALID_REPLICA_ASSIGNMENT", "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICATION_FACTOR", "NO_REASSIGNMENT_IN_PROGRESS",
    ]  # fmt: skip


def test_the_size_is_checked_after_the_assignment_and_only_from_4_1_on() -> None:
    wrong = event("reassign", partitions={"a-0": [9]}, allow_replication_factor_change=False)
    smaller = {**wrong, "partitions": {"a-0": [1]}}
    assert errors(replayed(snapshot(), [wrong])) == ["INVALID_REPLICA_ASSIGNMENT"]
    assert errors(replayed(snapshot(release="4.0"), [smaller])) == [None]


# --- AlterPartition ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"partition": "b-0"}, "UNKNOWN_TOPIC_ID"),
        ({"partition": "a-9"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"leader_epoch": 6}, "NOT_CONTROLLER"),
        ({"partition_epoch": 11, "leader_epoch": 4}, "NOT_CONTROLLER"),
        ({"leader_epoch": 4, "sender": 2}, "FENCED_LEADER_EPOCH"),
        ({"sender": 2, "partition_epoch": 9}, "INVALID_REQUEST"),
        ({"partition_epoch": 9, "isr": [4]}, "INVALID_UPDATE_VERSION"),
        ({"isr": [1, 4]}, "INVALID_REQUEST"),
        ({"isr": [1, 1]}, "INVALID_REQUEST"),
        ({"isr": [2, 3]}, "INVALID_REQUEST"),
        ({"recovery": 1}, "INVALID_REQUEST"),
        ({"isr": [1], "recovery": 1}, "INVALID_REQUEST"),
        ({"broker_epochs": {"2": 7}}, "INELIGIBLE_REPLICA"),
    ],
)
def test_refused_isr_changes(fields: dict[str, Any], error: str) -> None:
    asked = {"partition": "a-0", "isr": [1, 2], "sender": 1, **fields}
    tables = replayed(snapshot(), [event("isr_change", **asked)])
    assert tables["metadata_writes"] == []
    (row,) = tables["event_results"]
    assert (row["error"], row["topic"]) == (error, asked["partition"][0])


@pytest.mark.parametrize("away", [{"fenced": (2,)}, {"shutting_down": (2,)}, {"brokers": (1, 3)}])
def test_only_active_brokers_join_an_isr(away: dict[str, Any]) -> None:
    doc = snapshot(partition(isr=(1,)), **away)
    tables = replayed(doc, [event("isr_change", partition="a-0", isr=[1, 2])])
    assert errors(tables) == ["INELIGIBLE_REPLICA"]


def test_without_a_leader_nobody_can_report() -> None:
    tables = replayed(
        snapshot(partition(leader=-1)), [event("isr_change", partition="a-0", isr=[1])]
    )
    (row,) = tables["event_results"]
    assert (row["error"], row["topic"]) == ("STALE_BROKER_EPOCH", None)


def test_a_report_ends_the_recovery() -> None:
    doc = snapshot(partition(isr=(1,), recovery=1))
    tables = replayed(doc, [event("isr_change", partition="a-0", isr=[1])])
    assert records(tables) == ["a-0 recovery=0"]
    assert epochs(tables) == (5, 11)


def test_catching_up_appends_in_the_order_asked() -> None:
    doc = snapshot(partition(isr=(1,)), partition((2, 4), (2,), leader=-1), fenced=(5,))
    tables = replayed(doc, [event("catch_up", brokers=[5, 3, 2])])
    assert records(tables) == ["a-0 isr=[1,3,2]"]


# --- Elections ---------------------------------------------------------------------------------


def test_a_preferred_election_can_elect_somebody_else() -> None:
    doc = snapshot(partition(isr=(3, 2), leader=-1), fenced=(1,))
    tables = replayed(doc, [event("preferred_election", partitions=["a-0"])])
    assert (errors(tables), state(tables)["leader"]) == ([None], 2)


def test_a_preferred_election_keeps_a_good_leader() -> None:
    doc = snapshot(partition(isr=(2, 3)))
    tables = replayed(doc, [event("preferred_election", partitions=["a-0", "a-7"])])
    assert errors(tables) == ["PREFERRED_LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert tables["decisions"][0]["candidates"][0] == (1, "not_in_isr")


def test_elections_on_all_are_silent_where_none_is_needed() -> None:
    doc = snapshot(partition(), partition(isr=(3, 1)))
    tables = replayed(doc, [event("preferred_election", partitions="all")])
    assert [(r["partition"], r["error"]) for r in tables["event_results"]] == [(1, None)]
    tables = replayed(doc, [event("unclean_election", partitions=["a-0"])])
    assert errors(tables) == ["ELECTION_NOT_NEEDED"]


def test_a_requested_unclean_election_needs_no_setting() -> None:
    doc = snapshot(partition(isr=(1,), leader=-1), fenced=(1,), release="3.5")
    tables = replayed(doc, [event("unclean_election", partitions=["a-0"])])
    assert (state(tables)["leader"], state(tables)["recovery"]) == (2, 1)
    assert tables["decisions"][0]["unclean_allowed_by"] == "request"


def test_the_rebalance_moves_every_partition_whatever_the_imbalance() -> None:
    doc = snapshot(*[partition()] * 20, partition(isr=(2, 1, 3)))
    tables = replayed(doc, [event("auto_rebalance")])
    assert records(tables) == ["a-20 leader=1"]
    assert tables["event_results"] == []


@pytest.mark.parametrize(("release", "leader"), [("3.8", -1), ("3.9", 2)])
def test_the_unclean_task_exists_from_3_9_on(release: str, leader: int) -> None:
    doc = snapshot(
        partition(isr=(1,), leader=-1), fenced=(1,), release=release, topic_configs=UNCLEAN
    )
    assert state(replayed(doc, [event("auto_unclean_election")]))["leader"] == leader


@pytest.mark.parametrize(
    "asked",
    [
        event("preferred_election", partitions="all"),
        event("unregister", brokers=[2]),
        event("topic_change", topics={"new": {str(n): [1] for n in range(10_000)}}),
    ],
    ids=lambda asked: asked["type"],
)
def test_more_records_than_a_batch_holds_are_refused(asked: dict[str, Any]) -> None:
    doc = snapshot(*[partition((1, 2), (2, 1))] * 10_001)
    tables = replayed(doc, [asked])
    assert errors(tables) == ["POLICY_VIOLATION"]
    assert tables["metadata_writes"] == tables["decisions"] == []
    assert replayed({**doc, "release": "3.4"}, [asked])["metadata_writes"]


# --- Topics ------------------------------------------------------------------------------------


def test_a_new_topic_is_led_by_its_first_active_replica() -> None:
    doc = snapshot(fenced=(4,), dirs={4: [DIR_1], 5: [DIR_2, DIR_3]})
    tables = replayed(doc, [event("topic_change", topics={"new": {"0": [4, 5, 1]}})])
    row = tables["metadata_writes"][1]
    assert (row["record"], row["version"], row["changed"]) == ("PartitionRecord", 2, ())
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (5, (5, 1), 0)
    assert row["directories"] == (DIR_1, UNASSIGNED, MIGRATING)


def test_refused_topics() -> None:
    topics = {
        "a": {"0": [1]},
        "x_y": {"0": [1]},
        "gap": {"1": [1]},
        "uneven": {"0": [1], "1": [1, 2]},
        "dark": {"0": [5]},
        "strange": {"0": [9]},
    }
    doc = snapshot(fenced=(5,))
    first = event("topic_change", topics={"x.y": {"0": [1]}})
    tables = replayed(doc, [first, event("topic_change", topics=topics)])
    assert {r["topic"]: r["error"] for r in tables["event_results"]} == {
        "a": "TOPIC_ALREADY_EXISTS",
        "x_y": "INVALID_TOPIC_EXCEPTION",
        **dict.fromkeys(("gap", "uneven", "dark", "strange"), "INVALID_REPLICA_ASSIGNMENT"),
    }


def test_a_topic_deleted_and_created_again_has_lost_its_settings() -> None:
    doc = snapshot(partition(isr=(1,)), topic_configs=UNCLEAN)
    anew = event("topic_change", removed=["a", "b"], topics={"a": {"0": [1, 2]}})
    tables = replayed(doc, [anew, event("isr_change", partition="a-0", isr=[1]), fence(1)])
    assert (state(tables)["leader"], state(tables)["isr"]) == (-1, (1,))
    assert errors(tables) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert [w["record"] for w in tables["metadata_writes"]][:3] == [
        "RemoveTopicRecord", "TopicRecord", "PartitionRecord",
    ]  # fmt: skip


def test_partitions_are_added_with_the_replication_factor_there_is() -> None:
    grow = event("partition_change", topic="a", partitions={"1": [4, 5, 1]})
    tables = replayed(snapshot(), [grow])
    assert state(tables, 1)["leader"] == 4
    short = event("partition_change", topic="a", partitions={"1": [4]})
    unknown = event("partition_change", topic="b", partitions={"1": [4]})
    nothing = event("partition_change", topic="a", partitions={})
    assert errors(replayed(snapshot(), [short, unknown, nothing])) == [
        "INVALID_REPLICA_ASSIGNMENT", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_PARTITIONS",
    ]  # fmt: skip


def test_deleting_a_topic_is_immediate() -> None:
    doc = snapshot(partition(leader=-1, adding=[3]), fenced=(1, 2, 3))
    tables = replayed(doc, [event("delete_topics", topics=["a", "b"]), fence(1)])
    assert records(tables) == ["RemoveTopic", "b1 fenced=True"]
    assert (state(tables)["leader"], state(tables)["outcome"]) == (None, "deleted")


# --- Record order, as real clusters wrote it ---------------------------------------------------


@pytest.mark.parametrize(
    ("metadata_version", "again", "leader_epoch"),
    [("3.5-IV2", ["a-0 leader=-1"], 8), ("3.7-IV4", [], 7)],
)
def test_a_single_replica_shuts_down_is_fenced_and_returns(
    metadata_version: str, again: list[str], leader_epoch: int
) -> None:
    doc = snapshot(
        partition((1,)),
        release="3.7",
        metadata_version=metadata_version,
        brokers=(1,),
        dirs={1: [DIR_1]},
    )
    tables = replayed(doc, [event("controlled_shutdown", broker=1), fence(1), startup(1)])
    assert records(tables) == [
        "b1 shutting_down=True",
        "a-0 leader=-1",
        *again,
        "b1 fenced=True",
        "b1 fenced=True shutting_down=False",
        "b1 fenced=False",
        "a-0 leader=1",
    ]
    assert state(tables)["leader_epoch"] == leader_epoch


def test_a_controlled_shutdown_of_a_single_replica_with_elr() -> None:
    doc = snapshot(
        partition((1,)), partition((1,)), release="4.1", metadata_version="4.1-IV1", **ELR
    )
    shutdown = event("controlled_shutdown", broker=1)
    tables = replayed(doc, [shutdown, shutdown])
    loses = "elr=[1] isr=[] last_known_elr=[1] leader=-1"
    assert records(tables) == [
        *("b1 shutting_down=True", f"a-0 {loses}", f"a-1 {loses}"),
        "b1 fenced=True",
    ]


def test_a_controlled_shutdown_of_a_single_replica_without_elr() -> None:
    doc = snapshot(partition((1,)), release="4.0", metadata_version="4.0-IV3")
    tables = replayed(doc, [event("controlled_shutdown", broker=1)])
    assert records(tables) == ["b1 shutting_down=True", "a-0 leader=-1"]
    assert [row["version"] for row in tables["metadata_writes"]][1] == 2


def test_a_killed_process_of_a_single_replica_with_elr() -> None:
    doc = snapshot(partition((1,)), release="4.2", brokers=(1,), dirs={1: [DIR_1]}, **ELR)
    tables = replayed(doc, [fence(1), startup(1)])
    assert records(tables) == [
        "a-0 elr=[1] isr=[] last_known_elr=[1] leader=-1",
        "b1 fenced=True",
        "a-0 elr=[]",
        "b1 fenced=True shutting_down=False",
        "b1 fenced=False",
        "a-0 isr=[1] last_known_elr=[] leader=1 recovery=1",
    ]
    assert epochs(tables) == (7, 13)


@pytest.mark.parametrize(
    ("release", "metadata_version", "change", "register"),
    [("4.3", "3.3-IV3", 0, 1), ("4.3", "3.4-IV0", 0, 2), ("4.3", "3.7-IV2", 1, 3),
     ("4.3", "4.0-IV0", 1, 3), ("4.3", "4.0-IV1", 2, 3), ("4.3", "4.3-IV0", 2, 4),
     ("4.0", "4.3-IV0", 2, 3), ("4.3.1", "4.3", 2, 4)],
)  # fmt: skip
def test_record_versions_follow_the_metadata_version(
    release: str, metadata_version: str, change: int, register: int
) -> None:
    doc = snapshot(release=release, metadata_version=metadata_version, dirs={1: [DIR_1]})
    tables = replayed(doc, [fence(1), startup(1)])
    versions = {w["record"]: w["version"] for w in tables["metadata_writes"]}
    assert versions["PartitionChangeRecord"] == change
    assert versions["RegisterBrokerRecord"] == register
