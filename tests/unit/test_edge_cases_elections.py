"""Elections that are asked for, and events of other worlds, by their names in the specification.

Unless said otherwise the controller's epoch is 5, every record stands at partition epoch 10,
written by controller epoch 1, and unclean election is off.
"""

from __future__ import annotations

from functools import partial

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, UM, Outcome, event, reassigning

running = partial(cluster, epoch=5)


def preferred(*partitions: str) -> Document:
    return event("preferred_election", partitions=list(partitions) or "all")


def unclean(*partitions: str) -> Document:
    return event("unclean_election", partitions=list(partitions) or "all")


def rebalance(percentage: int | None = None) -> Document:
    return event("auto_rebalance", percentage=percentage)


def test_e32_the_preferred_replica_is_elected_and_the_unknown_is_answered() -> None:
    doc = running({"a": [partition([1, 2, 3], (2, 4, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, preferred("a-0", "zz-0"))
    assert out.record() == (1, 5, (1, 2, 3), 11)
    assert out.answers() == [("a-0", None), ("zz-0", "UNKNOWN_TOPIC_OR_PARTITION")]
    assert out.requests() == [(LAI, {1, 2, 3}), (UM, {1, 2, 3})]
    (decision,) = out.tables["decisions"]
    assert (decision["strategy"], decision["candidates"]) == ("preferred", ((1, "chosen"),))


def test_e32b_the_event_leaves_a_preferred_leader_alone() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1, 2])
    out = Outcome(doc, preferred("a-0"), preferred())
    assert out.answers() == [("a-0", "ELECTION_NOT_NEEDED")]  # "all" leaves these out
    assert out.tables["transitions"] == []


def test_e32c_the_preferred_replica_is_not_in_sync() -> None:
    doc = running({"a": [partition([1, 2], (2, 4, [2]))]}, live=[1, 2])
    out = Outcome(doc, preferred("a-0"))
    assert out.answers() == [("a-0", "PREFERRED_LEADER_NOT_AVAILABLE")]
    assert out.state() == "OnlinePartition"
    assert out.requests() == []
    (decision,) = out.tables["decisions"]
    assert decision["reason"] == "the preferred replica is not online or not in the ISR"


def test_e39_a_clean_election_does_not_end_a_recovery() -> None:
    doc = running({"a": [partition([1, 2], (2, 4, [2, 1]), recovery=1)]}, live=[1, 2])
    out = Outcome(doc, preferred("a-0"))
    assert out.record() == (1, 5, (2, 1), 11)
    assert out.partition()["recovery"] == 1


def test_a_partition_of_a_queued_topic_is_not_elected_for() -> None:
    doc = running({"a": [partition([1, 9], (1, 4, [1]))]}, live=[1], queued=["a"])
    out = Outcome(doc, preferred("a-0"), unclean("a-0"), preferred(), unclean())
    assert out.answers() == [("a-0", "INVALID_TOPIC_EXCEPTION")] * 2


def test_electing_for_a_partition_that_was_never_led_aborts_the_whole_event() -> None:
    topics = {"a": [partition([1, 2], (2, 4, [1, 2]))], "b": [partition([9])]}
    out = Outcome(running(topics, live=[1, 2]), preferred("a-0", "b-0"))
    assert out.answers() == [(None, "UNKNOWN_SERVER_ERROR")]
    assert out.record() == (2, 4, (1, 2), 10)
    assert Outcome(running(topics, live=[1, 2]), preferred()).answers() == [("a-0", None)]


def test_an_administrator_may_ask_for_an_unclean_election() -> None:
    doc = running({"a": [partition([1, 2], (-1, 4, [1]))]}, live=[2])
    out = Outcome(doc, unclean("a-0"))
    assert out.record() == (2, 5, (2,), 11)
    assert out.partition()["outcome"] == "elected_unclean"
    (decision,) = out.tables["decisions"]
    assert (decision["clean"], decision["unclean_allowed_by"]) == (False, "request")


def test_an_unclean_election_needs_somebody_who_lives() -> None:
    doc = running({"a": [partition([1, 2], (-1, 4, [1]))]}, live=[3])
    assert Outcome(doc, unclean()).answers() == [("a-0", "ELIGIBLE_LEADERS_NOT_AVAILABLE")]


def test_an_unclean_election_does_not_look_at_log_directories() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]), offline_dirs=[1])]}, live=[1, 2])
    out = Outcome(doc, unclean("a-0"))
    assert out.partition()["state_before"] == "OfflinePartition"
    assert out.answers() == [("a-0", "ELECTION_NOT_NEEDED")]


@pytest.mark.parametrize(("topic", "elected"), [("a", "a"), ("b", "b"), (None, "ab")])
def test_switching_unclean_election_on_tries_what_is_offline(
    topic: str | None, elected: str
) -> None:
    topics = {name: [partition([1, 2], (-1, 4, [1]))] for name in "ab"}
    out = Outcome(running(topics, live=[2]), event("unclean_enabled", topic=topic))
    assert [name for name in "ab" if out.record(name)[0] == 2] == list(elected)


def test_switching_it_on_for_a_topic_that_vanished_tries_nothing() -> None:
    doc = running({"a": [partition([1, 2], (-1, 4, [1]))]}, live=[2])
    gone = event("topic_change", removed=["a"])
    one = Outcome(doc, gone, event("unclean_enabled", topic="a"))
    assert one.tables["transitions"] == []
    every = Outcome(doc, gone, event("unclean_enabled"))
    assert every.failures() == ["partition"]


# --- Automatic rebalance -----------------------------------------------------------------------


def test_e36_only_those_whose_preferred_replica_is_in_sync_are_candidates() -> None:
    topics = {
        "a": [partition([1, 2, 3], (2, 4, [1, 2, 3]))],
        "b": [partition([1, 2, 3], (1, 4, [1, 2, 3]))],
        "c": [partition([1, 2, 3], (2, 4, [2]))],
    }
    doc = running(topics, live=[1, 2, 3])
    out = Outcome(doc, rebalance())
    assert [row["topic"] for row in out.tables["transitions"]] == ["a"]
    assert out.record("a") == (1, 5, (1, 2, 3), 11)
    assert out.answers() == []
    older = Outcome(doc | {"release": "2.5", "metadata_version": "2.5"}, rebalance())
    tried = {row["topic"]: row["result"] for row in older.tables["transitions"]}
    assert tried == {"a": "ok", "c": "failed"}


@pytest.mark.parametrize(("percentage", "elections"), [(49, 1), (50, 0)])
def test_the_ratio_has_to_be_exceeded(percentage: int, elections: int) -> None:
    topics = {
        "a": [partition([1, 2], (2, 4, [1, 2]))],
        "b": [partition([1, 2], (1, 4, [1, 2]))],
    }
    out = Outcome(running(topics, live=[1, 2]), rebalance(percentage))
    assert len(out.tables["transitions"]) == elections


def test_partitions_that_were_never_led_count_in_the_ratio() -> None:
    topics = {"a": [partition([1, 2], (2, 4, [1, 2]))], "b": [partition([1, 9])]}
    doc = running(topics, live=[1, 2])
    assert Outcome(doc, rebalance(50)).tables["transitions"] == []


@pytest.mark.parametrize(("release", "elections"), [("3.4", 1), ("3.3", 0)])
def test_until_3_3_any_reassignment_stops_the_rebalance(release: str, elections: int) -> None:
    topics = {
        "a": [partition([1, 2], (2, 4, [1, 2]))],
        "b": [reassigning([2, 1], (2, 4, [2]), adding=[1], removing=[])],
    }
    doc = running(topics, live=[1, 2]) | {"release": release, "metadata_version": release}
    assert len(Outcome(doc, rebalance()).tables["transitions"]) == elections


def test_each_broker_past_the_ratio_gets_its_own_batch_in_hash_order() -> None:
    topics = {
        "a": [partition([4, 1], (1, 4, [1, 4]))],
        "b": [partition([5, 1], (1, 4, [1, 5]))],
    }
    out = Outcome(running(topics, live=[1, 4, 5]), rebalance())
    assert [(r["step"], r["topic"]) for r in out.tables["transitions"]] == [(1, "b"), (2, "a")]


# --- Events of another profile -----------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        event("fence", brokers=[1]),
        event("unfence", brokers=[1]),
        event("unregister", brokers=[1]),
        event("assign_dirs", broker=1, partitions={"a-0": "x"}),
        event("auto_unclean_election"),
    ],
    ids=lambda each: str(each["type"]),
)
def test_an_event_of_another_profile_is_refused_and_the_next_goes_on(other: Document) -> None:
    doc = running({"a": [partition([1, 2], (2, 4, [1, 2]))]}, live=[1, 2])
    out = Outcome(doc, other, preferred())
    assert out.answers() == [(None, "UNSUPPORTED_VERSION"), ("a-0", None)]
    assert {row["event"] for row in out.tables["requests"]} == {2}
