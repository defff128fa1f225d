"""Which controllers can be compared, and what is said of those that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.controller.profiles import KRAFT, PROFILES, ZK
from understudy.errors import UsageError
from understudy.questions.compare.controllers import NEWEST, Controller, chosen, for_each
from understudy.questions.compare.rules import RULES, SAYS, UNKNOWN
from understudy.scenarios import FAILOVER, Scenario

DOCS = Path(__file__).parents[2] / "docs"


def test_every_combination_that_exists_is_taken_and_the_others_are_named() -> None:
    found, refused = chosen(["zk", "kraft"], ["3.9", "4.3"], [True, False])
    assert [each.label for each in found] == [
        "zk 3.9",
        "kraft 3.9 no-elr",
        "kraft 4.3 elr",
        "kraft 4.3 no-elr",
    ]
    assert refused == [
        "zk 4.3 does not exist: zk is 2.4 to 3.9",
        "kraft 3.9 elr does not exist: eligible leader replicas came with 4.0",
    ]


def test_a_profile_takes_its_newest_release() -> None:
    found, refused = chosen(["zk", "kraft", "zk"], [], [])
    assert found == [Controller(ZK, "3.9"), Controller(KRAFT, "4.3")]
    assert refused == []
    assert set(NEWEST) == set(PROFILES)
    assert all(PROFILES[name].is_verified(release) for name, release in NEWEST.items())


@pytest.mark.parametrize(
    ("profiles", "releases", "elr", "said"),
    [
        (["zk", "quorum"], [], [], "quorum is not one of zk, zk-legacy, kraft"),
        (["zk"], [], [], "two controllers are needed; there is zk 3.9"),
        (["zk", "zk"], ["3.9", "3.9"], [], "two controllers are needed; there is zk 3.9"),
        (["zk", "kraft"], ["3.9", "5.0"], [], "no controller is left of 5.0"),
        (["zk", "kraft"], ["4.3", "4.2"], [], "no controller is left of zk"),
        (["zk", "kraft"], ["3.9"], [True], "no controller is left of kraft"),
    ],
)
def test_what_leaves_nothing_to_compare_is_refused(
    profiles: list[str], releases: list[str], elr: list[bool], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(profiles, releases, elr)


def test_a_scenario_about_one_snapshot_is_about_each_of_its_forks() -> None:
    named = Scenario("lose-3", "c1", "s:1", ())
    controllers, _ = chosen(["zk", "kraft"], [], [])
    asked = for_each([FAILOVER, named], controllers)
    assert asked[0] == FAILOVER
    assert [each.snapshot_id for each in asked[1:]] == ["0:s:1", "1:s:1"]


def test_every_rule_is_described() -> None:
    lines = (DOCS / "compare.md").read_text(encoding="utf-8").splitlines()
    described = [line for line in lines if line.startswith("| `")]
    assert described == [f"| `{rule.name}` | {rule.says} |" for rule in RULES]
    assert set(SAYS) == {rule.name for rule in RULES} | {UNKNOWN}
