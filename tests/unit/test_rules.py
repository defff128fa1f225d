"""Rule sets: what is chosen, tuned and silenced, and everything wrong with a file told at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from understudy.errors import BadInputError
from understudy.questions.audit.rule import LOOKBACK, SEVERITIES, UNDECIDED
from understudy.questions.audit.rule_set import CATALOGUE, RuleSet, parse

ROOT = Path(__file__).parents[2]


def refused(text: str) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        parse(text, "rules.toml")
    return list(caught.value.problems)


def test_without_a_word_every_rule_is_judged() -> None:
    assert [rule.name for rule in parse("", "rules.toml").rules] == list(CATALOGUE)
    assert parse("", "rules.toml").settings() == RuleSet().settings()


def test_only_these_and_all_without() -> None:
    only = parse('only = ["rf-one", "offline"]', "r")
    assert {rule.name for rule in only.rules} == {"rf-one", "offline"}
    without = parse('without = ["rf-one"]', "r")
    assert {rule.name for rule in without.rules} == set(CATALOGUE) - {"rf-one"}


def test_a_rule_is_tuned() -> None:
    tuned = parse('[rule.leader-skew]\nseverity = "error"\nratio = 3', "r")
    (rule,) = (rule for rule in tuned.rules if rule.name == "leader-skew")
    assert rule.severity == "error"
    assert "leaders * live_brokers > 3 * all_leaders" in rule.condition()
    assert "leaders >= 20" in rule.condition()
    assert tuned.settings() != RuleSet().settings()


def test_a_silence_holds_until_the_end_of_its_day() -> None:
    text = '[[silence]]\nrule = "rf-one"\ntopic = "tmp-.*"\nuntil = 2026-12-31\nreason = "soon"'
    rules = parse(text, "r")
    (silence,) = rules.silences
    assert silence.told() == "rule rf-one, topic tmp-.* (soon)"
    assert silence.until == datetime(2027, 1, 1, tzinfo=UTC)
    assert rules.expired(datetime(2026, 12, 31, 23, 59, tzinfo=UTC)) == []
    assert rules.expired(datetime(2027, 1, 1, tzinfo=UTC)) == [silence]


def test_everything_wrong_is_told_at_once() -> None:
    problems = refused(
        """
        colour = "red"
        only = ["offline", "of-line"]
        without = ["rf-on"]
        [rule.rf-two]
        [rule.leader-skew]
        ratio = "much"
        speed = 1
        [rule.offline]
        severity = "awful"
        [[silence]]
        rule = "rf-one"
        [[silence]]
        until = 2026-12-31
        reason = "all of it"
        [[silence]]
        topic = "("
        partition = -1
        shade = 1
        until = "2026-12-31"
        reason = ""
        """
    )
    for said in (
        "colour: no such key",
        "only: no rule is called 'of-line'",
        "without: no rule is called 'rf-on'",
        "only, without: one of them is enough",
        "rule.rf-two: no rule is called",
        "rule.offline.severity: expected one of",
        "silence 1: needs a reason",
        "silence 1: needs until",
        "silence 2: needs one of rule, cluster, topic, partition, broker",
        "silence 3: shade: no such key",
        "silence 3: topic: not a regular expression",
        "silence 3: partition: expected a number",
        "silence 3: reason: expected a text",
        "silence 3: needs until",
    ):
        assert any(said in problem for problem in problems), said


def test_parameters_are_numbers_with_known_names() -> None:
    problems = refused('[rule.leader-skew]\nratio = "much"\nat_least = true\nspeed = 1')
    assert [problem.split(":")[0] for problem in problems] == [
        "rule.leader-skew.speed",
        "rule.leader-skew.ratio",
        "rule.leader-skew.at_least",
    ]


def test_what_is_not_toml_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"rules\.toml: not TOML"):
        parse("only = [", "rules.toml")


def test_undecided_is_not_tuned_into_a_verdict() -> None:
    (problem,) = refused('[rule.incomplete-snapshot]\nseverity = "info"')
    assert "severity" in problem


def test_every_rule_is_whole() -> None:
    for name, rule in CATALOGUE.items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert rule.severity in (*SEVERITIES, UNDECIDED)
        assert rule.says.endswith(".")
        assert rule.link.startswith("https://")
        assert 0 <= rule.lookback <= LOOKBACK
        assert not (rule.lookback and rule.on_incomplete)
        assert "{" not in rule.condition() + rule.told(), f"{name}: a parameter nobody gives"
        looks_back = {"before.": 1, "seconds": 1, "earlier": 2, "returned": 2}
        needed = max((n for word, n in looks_back.items() if word in rule.when), default=0)
        assert rule.lookback >= needed


def test_every_rule_is_documented() -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([a-z0-9-]+)` \| ([a-z]+) \|", page, re.MULTILINE)
    assert dict(documented) == {rule.name: rule.severity for rule in CATALOGUE.values()}
    assert all(rule.link in page for rule in CATALOGUE.values())
    assert all(rule.says in page for rule in CATALOGUE.values())
