"""What audits found, as a page: the verdict, how it came to it, and what is behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from understudy.report.audit_facts import AT_RISK, BROKEN, BROKERS, MOVES
from understudy.report.html import charts
from understudy.report.html.markup import Markup, joined
from understudy.report.html.page import (
    badge,
    banner,
    cell,
    document,
    grid,
    section,
    shown_of,
    table,
    tile,
    tiles,
)
from understudy.report.tables import amount

Told = dict[str, Any]

_TILES: Final = {
    "errors": "a rule is broken",
    "warnings": "something is about to go wrong, or went",
    "infos": "good to know",
    "silenced": "not counted, as the rules say",
}
_COUNTS: Final = ("errors", "warnings", "infos")
_ROLL_UPS: Final = {"topics": "topic", "brokers": "broker_id", "racks": "rack"}


def as_html(told: Told) -> str:
    """The whole page."""
    over = amount(told["clusters"]["count"], "cluster")
    judged = f"{amount(told['snapshots'], 'snapshot')} of {over}"
    found = f"{amount(told['errors'], 'error')}, {amount(told['warnings'], 'warning')}"
    return document(
        "Do the rules hold?",
        f"{judged} · as of run {told['run_id']}",
        banner(told["verdict"], f"{judged} judged: {found}."),
        section("Findings", tiles(*_counted(told))),
        _clusters(told["clusters"]),
        *_history(told["history"]),
        _rules(told["rules"]),
        _findings(told["findings"]),
        _roll_ups(told),
        _exposed(told["exposed"]),
        _exposure(told["exposure"]),
        _changes(told["changes"]),
        _divergences(told["divergences"]),
    )


def _counted(told: Told) -> list[Markup]:
    return [
        tile(told[name], name, says, bad=name == "errors" and told[name] > 0)
        for name, says in _TILES.items()
    ]


def _clusters(found: Told) -> Markup:
    if found["count"] <= 1:
        return joined()
    names = ("snapshots", "incomplete", *_TILES)
    rows = [(row["cluster"], *(row[name] for name in names)) for row in found["first"]]
    return section(
        "Cluster by cluster", table(shown_of(found, "clusters"), ("cluster", *names), rows)
    )


def _history(rows: Sequence[Told]) -> list[Markup]:
    """Charts per cluster: what is broken, what is about to break, and what happened meanwhile."""
    clusters: dict[str, list[Told]] = {}
    for row in rows:
        clusters.setdefault(row["cluster"], []).append(row)
    return [
        section(
            f"How it went: {cluster}",
            grid(
                _lines("Broken", cluster, snapshots, BROKEN),
                _lines("At risk", cluster, snapshots, AT_RISK),
                _lines("Brokers", cluster, snapshots, BROKERS, of="brokers"),
                _lines("Leader moves", cluster, snapshots, MOVES),
            ),
            note="Partitions, or brokers, in each snapshot; moves since the one before."
            " A rule that was not asked for counts nothing.",
        )
        for cluster, snapshots in clusters.items()
    ]


def _lines(
    title: str,
    cluster: str,
    snapshots: Sequence[Told],
    rules: Mapping[str, str],
    of: str = "partitions",
) -> Markup:
    times = [row["taken_at"] or row["snapshot_id"] for row in snapshots]
    series = [(name, [row[rule] for row in snapshots]) for rule, name in rules.items()]
    last = ", ".join(f"{values[-1]:,} {name}" for name, values in series)
    drawing = charts.timeline(f"{title}: {of} of {cluster} over time", times, series)
    return charts.figure(title, f"In the newest snapshot: {last}.", drawing)


def _rules(rows: Sequence[Told]) -> Markup:
    if not rows:
        return joined()
    cells = [
        (
            badge(row["severity"]),
            row["rule"],
            *(row[name] for name in ("findings", "snapshots", "partitions")),
            row["says"],
        )
        for row in rows
    ]
    headings = ("severity", "rule", "findings", "snapshots", "partitions", "what it means")
    return section("Rule by rule", table(amount(len(rows), "rule"), headings, cells))


def _findings(found: Told) -> Markup:
    if not found["count"]:
        return joined()
    rows = [
        (
            badge(row["severity"]),
            row["taken_at"],
            row["cluster"],
            row["rule"],
            *_subject(row),
            row["evidence"],
        )
        for row in found["first"]
    ]
    headings = ("severity", "snapshot", "cluster", "rule", "topic", "partition", "broker")
    return section(
        "Top findings", table(shown_of(found, "findings"), (*headings, "evidence"), rows)
    )


def _roll_ups(told: Told) -> Markup:
    parts = []
    for name, key in _ROLL_UPS.items():
        found = told[name]
        if found["count"]:
            rows = [
                (row["cluster"], str(row[key]), *(row[c] for c in _COUNTS))
                for row in found["first"]
            ]
            headings = ("cluster", key.removesuffix("_id"), *_COUNTS)
            parts.append(table(shown_of(found, name), headings, rows))
    return section("Where", grid(*parts)) if parts else joined()


def _exposure(found: Told) -> Markup:
    if not found["count"]:
        return joined()
    rows = [
        (
            row["rule"],
            row["cluster"],
            *_subject(row),
            row["snapshots"],
            row["since"],
            row["until"] or "still",
        )
        for row in found["first"]
    ]
    headings = ("rule", "cluster", "topic", "partition", "broker", "snapshots", "since", "until")
    return section(
        "For how long",
        table(shown_of(found, "intervals"), headings, rows),
        note="What still lasts first, the worst of it before the rest.",
    )


def _exposed(found: Told) -> Markup:
    parts = []
    for key, listing in found.items():
        if listing["count"]:
            names = ("cluster", key, "rule", "partitions", "snapshots", "first", "last")
            rows = [tuple(row[name] for name in names) for row in listing["first"]]
            parts.append(table(shown_of(listing, f"conditions by {key}"), names, rows))
    return section("Exposed", grid(*parts)) if parts else joined()


def _changes(rows: Sequence[Told]) -> Markup:
    if not rows:
        return joined()
    cells = [(row["reason"], row["changes"], row["partitions"], row["leaders"]) for row in rows]
    return section(
        "What changed, and why",
        table(
            amount(len(rows), "reason"), ("reason", "changes", "partitions", "leader moves"), cells
        ),
        note="Every difference between one snapshot and the next has the event that made it.",
    )


def _divergences(found: Told) -> Markup:
    if not found["count"]:
        return joined()
    names = ("reason", "taken_at", "cluster", "topic", "partition", "field")
    rows = [
        (*(row[name] for name in names), row["predicted"], row["recorded"])
        for row in found["first"]
    ]
    headings = ("reason", "snapshot", *names[2:], "predicted", "recorded")
    return section("Not as predicted", table(shown_of(found, "differences"), headings, rows))


def _subject(row: Told) -> tuple[object, object, object]:
    broker = None if row["broker_id"] is None else str(row["broker_id"])
    return row["topic"], row["partition"], cell(broker)
