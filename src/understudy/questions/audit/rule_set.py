"""A rule set: which rules are judged, with which parameters, and what is silenced until when.

Written as TOML, read into plain values; everything wrong with it is told at once.

    without = ["rack-blind"]            # or: only = ["offline", "under-min-isr"]

    [rule.leader-skew]
    severity = "info"
    ratio = 3.0

    [[silence]]
    rule = "rf-one"
    topic = "scratch-.*"
    until = 2026-12-31
    reason = "moved to three replicas by then"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.questions.audit.history_rules import HISTORY_RULES
from understudy.questions.audit.rule import SEVERITIES, UNDECIDED, Parameter, Rule, Subject
from understudy.questions.audit.state_rules import STATE_RULES

CATALOGUE: Final = {rule.name: rule for rule in (*STATE_RULES, *HISTORY_RULES)}

_KEYS: Final = ("only", "without", "rule", "silence")
_SILENCE_KEYS: Final = ("rule", "cluster", "topic", "partition", "broker", "until", "reason")
_CHOOSING: Final = _SILENCE_KEYS[:5]


@dataclass(frozen=True)
class Silence:
    """What is not counted, why, and until when; what is not named is any."""

    rule: str | None
    cluster: str | None
    topic: str | None
    """A regular expression that has to match the whole name."""
    partition: int | None
    broker: int | None
    until: datetime
    """The first instant it no longer holds: the end of the day that was written."""
    reason: str

    def told(self) -> str:
        named = [
            f"{name} {value}" for name in _CHOOSING if (value := getattr(self, name)) is not None
        ]
        return f"{', '.join(named)} ({self.reason})"


@dataclass(frozen=True)
class RuleSet:
    """The rules that are judged, as tuned, and what is silenced."""

    rules: tuple[Rule, ...] = tuple(CATALOGUE.values())
    silences: tuple[Silence, ...] = ()

    def about(self, subject: Subject) -> list[Rule]:
        return [rule for rule in self.rules if rule.subject == subject]

    def expired(self, now: datetime) -> list[Silence]:
        return [silence for silence in self.silences if silence.until <= now]

    def settings(self) -> dict[str, object]:
        """What an answer depends on, ready for a digest."""
        return {
            "rules": [
                [rule.name, rule.severity, dict(sorted(rule.parameters.items()))]
                for rule in sorted(self.rules, key=lambda rule: rule.name)
            ],
            "silences": sorted(
                [str(getattr(silence, name)) for name in _SILENCE_KEYS] for silence in self.silences
            ),
        }


def parse(content: str, source: str) -> RuleSet:
    """The rule set in the text of a TOML file, or an error with everything wrong with it."""
    try:
        given = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{source}: not TOML: {error}") from None
    problems = _unknown("", given, _KEYS)
    names = _chosen(given, problems)
    rules = _tuned(names, given.get("rule", {}), problems)
    silences = _silences(given.get("silence", []), problems)
    if problems:
        raise BadInputError(f"{source}: the rules are refused", problems)
    return RuleSet(tuple(rules), tuple(silences))


# --- Choosing and tuning -------------------------------------------------------------------------


def _chosen(given: Mapping[str, Any], problems: list[str]) -> list[str]:
    lists: dict[str, list[str]] = {}
    for key in ("only", "without"):
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            problems.append(f"{key}: expected a list of rule names")
            continue
        problems += [f"{key}: {_no_rule(name)}" for name in value if name not in CATALOGUE]
        lists[key] = value
    if "only" in given and "without" in given:
        problems.append("only, without: one of them is enough")
    wanted = lists["only"] if lists.get("only") else list(CATALOGUE)
    return [name for name in CATALOGUE if name in wanted and name not in lists.get("without", [])]


def _tuned(names: Sequence[str], given: Any, problems: list[str]) -> list[Rule]:  # noqa: ANN401
    if not isinstance(given, dict):
        problems.append("rule: expected tables like [rule.leader-skew]")
        return []
    problems += [f"rule.{name}: {_no_rule(name)}" for name in given if name not in CATALOGUE]
    return [_tune(CATALOGUE[name], given.get(name, {}), problems) for name in names]


def _tune(rule: Rule, given: Any, problems: list[str]) -> Rule:  # noqa: ANN401
    where = f"rule.{rule.name}"
    if not isinstance(given, dict):
        problems.append(f"{where}: expected a table of its severity and parameters")
        return rule
    problems += _unknown(f"{where}.", given, ("severity", *rule.parameters))
    severity = given.get("severity", rule.severity)
    if severity != rule.severity and (severity not in SEVERITIES or rule.severity == UNDECIDED):
        problems.append(f"{where}.severity: expected one of {', '.join(SEVERITIES)}")
    parameters = {
        name: _number(given.get(name, value), f"{where}.{name}", problems)
        for name, value in rule.parameters.items()
    }
    return replace(rule, severity=str(severity), parameters=parameters)


def _number(value: Any, where: str, problems: list[str]) -> Parameter:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**9:
        problems.append(f"{where}: expected a number from 0 to 999999999")
        return 0
    return value


# --- Silencing -----------------------------------------------------------------------------------


def _silences(given: Any, problems: list[str]) -> list[Silence]:  # noqa: ANN401
    if not isinstance(given, list):
        problems.append("silence: expected tables like [[silence]]")
        return []
    found = [_silence(each, f"silence {n}", problems) for n, each in enumerate(given, 1)]
    return [silence for silence in found if silence is not None]


def _silence(given: Any, where: str, problems: list[str]) -> Silence | None:  # noqa: ANN401
    if not isinstance(given, dict):
        problems.append(f"{where}: expected a table")
        return None
    until = given.get("until")
    wrong = [*_unknown(f"{where}: ", given, _SILENCE_KEYS), *_wrong_values(given, where)]
    if isinstance(until, datetime) or not isinstance(until, date):
        wrong.append(f"{where}: needs until, a date like 2026-12-31")
        until = None
    problems += wrong
    if wrong or until is None:
        return None
    return Silence(
        rule=given.get("rule"),
        cluster=given.get("cluster"),
        topic=given.get("topic"),
        partition=given.get("partition"),
        broker=given.get("broker"),
        until=datetime.combine(until, time(tzinfo=UTC)) + timedelta(days=1),
        reason=given["reason"],
    )


def _wrong_values(given: Mapping[str, Any], where: str) -> list[str]:
    wrong = []
    if not any(name in given for name in _CHOOSING):
        wrong.append(f"{where}: needs one of {', '.join(_CHOOSING)}")
    wrong += [
        f"{where}: {name}: expected a text"
        for name in ("rule", "cluster", "topic", "reason")
        if name in given and (not isinstance(given[name], str) or not given[name].strip())
    ]
    wrong += [
        f"{where}: {name}: expected a number"
        for name in ("partition", "broker")
        if name in given and (type(given[name]) is not int or given[name] < 0)
    ]
    if isinstance(given.get("rule"), str) and given["rule"] not in CATALOGUE:
        wrong.append(f"{where}: {_no_rule(given['rule'])}")
    if isinstance(given.get("topic"), str):
        wrong += _bad_regex(given["topic"], where)
    if "reason" not in given:
        wrong.append(f"{where}: needs a reason")
    return wrong


def _bad_regex(pattern: str, where: str) -> list[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"{where}: topic: not a regular expression: {error}"]
    return []


def _unknown(where: str, given: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    return [
        f"{where}{key}: no such key; there are {', '.join(known)}"
        for key in given
        if key not in known
    ]


def _no_rule(name: str) -> str:
    return f"no rule is called {name!r}"
