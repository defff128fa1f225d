"""Units that fail together, and the scenarios that play them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from understudy.commands.whatif import announcement
from understudy.errors import BadInputError, UsageError
from understudy.questions import units
from understudy.questions.units import Broker, Cluster, Unit
from understudy.questions.what_if.failures import AFTER, DURING, Asked, Case, cases, how_many
from understudy.scenarios import Scenario


def zk(snapshot_id: str = "s1", controller: int = 1) -> Cluster:
    return Cluster(
        "c",
        snapshot_id,
        "zk",
        controller,
        {
            1: Broker(alive=True, rack="a"),
            2: Broker(alive=True, rack="b"),
            3: Broker(alive=True, rack="b"),
            4: Broker(alive=False, rack="b"),
        },
        assigned=frozenset({1, 2, 3, 4, 9}),
    )


def kraft(voters: frozenset[int] | None = None) -> Cluster:
    brokers = {b: Broker(alive=True, log_dirs=(f"d{b}", f"e{b}")) for b in (1, 2, 3)}
    return Cluster("k", "s1", "kraft", 1, brokers, voters=voters)


def events(case: Case) -> list[dict[str, Any]]:
    return [json.loads(event) for event in case.scenario.events]


def one(asked: Asked, cluster: Cluster) -> Case:
    (case,) = cases(asked, [cluster])
    return case


def test_scenarios_are_counted_over_the_snapshots_they_are_about() -> None:
    clusters = [zk("s1"), zk("s2"), kraft()]

    def counted(asked: Asked) -> int:
        return how_many(asked, cases(asked, clusters), clusters)

    assert counted(Asked(every=("broker",))) == 3 * 3
    assert counted(Asked(every=("broker", "pair"))) == 3 * (3 + 3)
    assert counted(Asked(together=(units.parse("rack:b"),))) == 2
    given = [Scenario("all", None, None, ()), Scenario("c", "c", None, ())]
    assert counted(Asked(scenarios=tuple(given))) == 3 + 2
    assert counted(Asked(scenarios=(Scenario("one", "c", "s2", ()),))) == 1


def test_many_scenarios_over_several_snapshots_are_announced() -> None:
    assert announcement(3000, 36_000) == (
        "36,000 scenarios over 3,000 snapshots are judged, which may take long; to ask about one"
        " snapshot give its document, or load it into a store of its own (load --at)"
    )
    assert announcement(1, 36_000) is None
    assert announcement(3, 36) is None


def test_units_are_read_as_they_are_written() -> None:
    assert units.parse("broker:7, rack:b") == (Unit("broker", "7"), Unit("rack", "b"))
    assert units.group_name(units.parse("pair:3,7")) == "pair:3,7"
    assert units.group_name(units.parse("broker:7,rack:b")) == "broker:7,rack:b"
    assert units.parse("dir:3:/data:1") == (Unit("dir", "3:/data:1"),)


@pytest.mark.parametrize(
    "text", ["", " , ", "7a", "broker:", "broker:x", "brocker:7", "rack:", "dir:3", "dir:x:/d"]
)
def test_what_is_no_unit_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        units.parse(text)


def test_all_that_is_wrong_with_a_list_is_said_at_once() -> None:
    with pytest.raises(UsageError) as raised:
        units.parse("broker:x,host:1,rack:b")
    assert "'broker:x'" in str(raised.value)
    assert "'host:1'" in str(raised.value)


def test_brokers_that_fail_together_are_one_failure() -> None:
    case = one(Asked(together=(units.parse("broker:2,broker:3"),)), zk())
    assert case.scenario == Scenario("broker:2,broker:3", "c", "s1", case.scenario.events)
    assert events(case) == [{"type": "broker_failure", "brokers": [2, 3]}]
    assert case.brokers == case.gone == (2, 3)


def test_the_controllers_broker_takes_the_controller_along() -> None:
    case = one(Asked(together=(units.parse("rack:a,broker:3"),)), zk())
    assert events(case) == [{"type": "controller_failover", "dead": [1, 3]}]


def test_a_quorum_controller_stays_whatever_broker_fails() -> None:
    case = one(Asked(together=(units.parse("broker:1"),)), kraft())
    assert events(case) == [{"type": "broker_failure", "brokers": [1]}]


def test_every_broker_and_rack_that_is_alive() -> None:
    found = cases(Asked(every=("broker", "rack")), [zk()])
    named = {case.scenario.scenario: case.brokers for case in found}
    assert named == {
        "broker:1": (1,),
        "broker:2": (2,),
        "broker:3": (3,),
        "rack:a": (1,),
        "rack:b": (2, 3, 4),
    }


def test_the_same_failure_asked_for_twice_is_one_scenario() -> None:
    found = cases(Asked(together=(units.parse("broker:2"),), every=("broker",)), [zk()])
    assert [case.scenario.scenario for case in found] == ["broker:2", "broker:1", "broker:3"]


def test_each_snapshot_has_its_own_controller() -> None:
    found = cases(Asked(together=(units.parse("broker:2"),)), [zk(), zk("s2", controller=2)])
    assert [(case.scenario.snapshot_id, events(case)[0]["type"]) for case in found] == [
        ("s1", "broker_failure"),
        ("s2", "controller_failover"),
    ]


def test_brokers_come_back_though_nobody_lists_them() -> None:
    case = one(Asked(restored=(units.parse("broker:9,broker:4,broker:1"),)), zk())
    assert case.scenario.scenario == "restore broker:9,broker:4,broker:1"
    assert events(case) == [{"type": "broker_startup", "brokers": [4, 9]}]
    assert (case.gone, case.back) == ((), (4, 9))


def test_units_of_a_dependency_table() -> None:
    table = units.dependencies(["unit,broker_id", "switch-1,1", "switch-1,3", "", "pdu,2"], "f.csv")
    assert table == {"switch-1": frozenset({1, 3}), "pdu": frozenset({2})}
    found = cases(Asked(every=("unit",), dependencies=table), [kraft()])
    assert {case.scenario.scenario: case.brokers for case in found} == {
        "unit:pdu": (2,),
        "unit:switch-1": (1, 3),
    }


def test_everything_wrong_with_a_dependency_table_is_said() -> None:
    with pytest.raises(BadInputError) as raised:
        units.dependencies(["host,id", "a,1", "b,x", ",2"], "f.csv")
    assert [problem.split(":")[0] for problem in raised.value.problems] == [
        "line 1",
        "line 3",
        "line 4",
    ]


def test_log_directories_of_kraft() -> None:
    case = one(Asked(together=(units.parse("dir:2:d2"),)), kraft())
    assert events(case) == [{"type": "log_dir_failure", "broker": 2, "dirs": ["d2"]}]
    assert (case.brokers, case.gone) == ((2,), ())


@pytest.mark.parametrize(
    ("voters", "survives"),
    [(frozenset({1, 2, 3}), True), (frozenset({1, 2}), False), (None, None)],
)
def test_a_voter_of_the_quorum(voters: frozenset[int] | None, survives: bool | None) -> None:  # noqa: FBT001
    case = one(Asked(together=(units.parse("controller:1"),)), kraft(voters))
    assert case.quorum is not None
    assert case.quorum[0] is survives
    assert events(case) == []


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("broker:77", "the brokers are 1, 2, 3, 4, 9"),
        ("rack:z", "the racks are a, b"),
        ("unit:x", "there are no units"),
        ("dir:1:d1", "do not know the log directories of broker 1"),
        ("controller:1", "only KRaft has a quorum"),
    ],
)
def test_what_nobody_knows_is_named_with_what_there_is(unit: str, told: str) -> None:
    with pytest.raises(BadInputError) as raised:
        cases(Asked(together=(units.parse(unit),)), [zk()])
    (problem,) = raised.value.problems
    assert problem.startswith(f"{unit}: ")
    assert told in problem


def test_all_unknown_units_are_said_at_once() -> None:
    asked = Asked(together=(units.parse("broker:77,rack:z"),), every=("unit",))
    with pytest.raises(BadInputError) as raised:
        cases(asked, [zk()])
    assert len(raised.value.problems) == 3


def test_a_plan_is_judged_before_during_and_after() -> None:
    asked = Asked(together=(units.parse("broker:2"),), plan={"orders-0": [3, 1]})
    found = {case.scenario.scenario: events(case) for case in cases(asked, [zk()])}
    start = {"type": "reassign", "partitions": {"orders-0": [3, 1]}}
    done = {"type": "catch_up", "brokers": [1, 3]}
    failure = {"type": "broker_failure", "brokers": [2]}
    assert found == {
        "broker:2": [failure],
        DURING: [start],
        f"broker:2 {DURING}": [start, failure],
        AFTER: [start, done],
        f"broker:2 {AFTER}": [start, done, failure],
    }


def test_a_scenario_is_about_the_brokers_it_leaves_down() -> None:
    texts = (
        '{"type": "broker_failure", "brokers": [1, 2]}',
        '{"type": "controlled_shutdown", "broker": 3}',
        '{"type": "broker_startup", "brokers": [2]}',
    )
    case = one(Asked(scenarios=(Scenario("mine", None, None, texts),)), zk())
    assert case.brokers == case.gone == (1, 3)
