"""What failures would do, as a page: the verdict, the worst of them, and what helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from understudy.report import what_if_text
from understudy.report.html import charts
from understudy.report.html.markup import Markup, joined, tag
from understudy.report.html.page import (
    badge,
    banner,
    document,
    grid,
    section,
    shown_of,
    table,
    tile,
    tiles,
)
from understudy.report.tables import amount, leader, size

Told = dict[str, Any]

_REQUESTS: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
_BYTES: Final = ("leader_and_isr_bytes", "update_metadata_bytes", "stop_replica_bytes")
_STORM: Final = "Bytes of requests the controller sends to each broker, estimated."
_HEADINGS: Final = {"cluster": "cluster", "snapshot_id": "snapshot"}
_COUNTS: Final = {
    "unavailable": "offline",
    "full_acks_produce_unavailable": "acks=all refused",
    "unclean": "unclean",
    "newly_at_min_isr": "none to spare",
    "leaders_moved": "leaders moved",
}


def as_html(told: Told) -> str:
    """The whole page."""
    counts = [f"{count:,} {name}" for name, count in told["verdicts"].items() if count]
    scenarios = what_if_text.how_many(told)
    sentence = f"Of {scenarios}: {', '.join(counts)}." if counts else "No scenario was asked."
    for worst in told["scenarios"]["first"][:1]:
        which = "".join(f", {_HEADINGS[name]} {worst[name]}" for name in told["several"])
        if worst["reason"]:
            sentence += f" Worst is {worst['scenario']}{which}: {worst['reason']}."
    focus = told["focus"] or {}
    where = f"{focus['cluster']}, snapshot {focus['snapshot_id']}" if focus else ""
    has_pairs = told["pairs"]["count"] > 0
    return document(
        "What if brokers fail?",
        f"Run {told['run_id']}",
        banner(told["verdict"], sentence),
        _internal(told["internal_topics"]),
        _risks(told["risks"]),
        *(tag("p", f"Note: {note}.", class_="quiet") for note in told["notes"]),
        _worst(told["worst"], told["several"], has_pairs=has_pairs),
        _worst_failure(focus, where, told["brokers"], has_pairs=has_pairs),
        _pair_failures(where, told["pairs"]),
        _at_risk(told["at_risk"], told["several"]),
        _cut_sets(told["cut_sets"]),
        _restart(told["rounds"], told["moves"], told["plan"]),
        _recovery(told["recovery"]),
    )


def _internal(topics: Sequence[str]) -> Markup:
    if not topics:
        return joined()
    return tag("p", tag("strong", "Internal topics at risk: "), ", ".join(topics), class_="callout")


def _risks(risks: Mapping[str, int]) -> Markup:
    meanings = what_if_text.RISK_MEANINGS
    return section(
        "Risks that come true",
        tiles(
            *(tile(risks[name], name, says, bad=risks[name] > 0) for name, says in meanings.items())
        ),
        note="In how many scenarios, for one partition or more.",
    )


def _worst(found: Told, which: Sequence[str], *, has_pairs: bool) -> Markup:
    if not found["first"]:
        return joined()
    headings = (
        *(_HEADINGS[name] for name in which),
        "scenario",
        "verdict",
        *_COUNTS.values(),
        "why",
    )
    rows = [
        (
            *(row[name] for name in (*which, "scenario")),
            badge(row["verdict"]),
            *(row[name] for name in _COUNTS),
            row["reason"] or "nothing gets worse",
        )
        for row in found["first"]
    ]
    return section(
        "The worst failures",
        table(shown_of(found, "scenarios"), headings, rows),
        note="Partitions that are newly so because of the failure."
        + (" Pairs of brokers stand further down." if has_pairs else ""),
    )


def _worst_failure(focus: Mapping[str, str], where: str, found: Told, *, has_pairs: bool) -> Markup:
    rows = found["first"]
    if not rows:
        return joined()
    names = [(_named(row), row) for row in rows]
    leaders = charts.paired_bars(
        "Partitions led by each broker before and after",
        ("before", "after"),
        [(name, row["leaders_before"] or 0, row["leaders"] or 0) for name, row in names],
    )
    sent = [(name, [row[part] or 0 for part in _BYTES]) for name, row in names]
    storm = charts.stacked_bars(
        _STORM.removesuffix("."),
        _REQUESTS,
        [(name, parts, size(sum(parts))) for name, parts in sent],
    )
    known = any(row[part] is not None for row in rows for part in _BYTES)
    told = charts.figure("Request storm", _STORM, storm)
    worst = "The worst failure but for pairs" if has_pairs else "The worst failure"
    return section(
        f"If it happens: {focus['scenario']}",
        grid(
            charts.figure("Leaders per broker", shown_of(found, "brokers"), leaders),
            told
            if known
            else tag("p", "In KRaft brokers fetch metadata: nothing is sent to them."),
        ),
        note=f"{worst}, broker by broker: {where}.",
    )


def _named(row: Told) -> str:
    return f"{row['broker_id']}" + (f" ({row['rack']})" if row["rack"] is not None else "")


def _pair_failures(where: str, found: Told) -> Markup:
    if not found["count"]:
        return joined()
    cells = {
        tuple(row["brokers"]): (row["full_acks_produce_unavailable"], _pair_told(row))
        for row in found["cells"]
    }
    ids = found["ids"]
    chosen = amount(found["brokers"], "broker")
    chosen += "" if len(ids) >= found["brokers"] else f", the {len(ids)} worst shown"
    chosen += f"; the darkest square is {max((value for value, _ in cells.values()), default=0):,}"
    drawing = charts.heat_map("Partitions that refuse acks=all by pair of brokers", ids, cells)
    rows = [
        (
            ", ".join(map(str, row["brokers"])),
            badge(row["verdict"]),
            row["unavailable"],
            row["full_acks_produce_unavailable"],
        )
        for row in found["first"]
    ]
    return section(
        "When two brokers fail together",
        grid(
            charts.figure("Partitions that refuse acks=all", chosen, drawing),
            table(
                shown_of(found, "pairs"),
                ("brokers", "verdict", "offline", "acks=all refused"),
                rows,
            ),
        ),
        note=f"In {where}.",
    )


def _pair_told(row: Told) -> str:
    one, other = row["brokers"]
    blocked = row["full_acks_produce_unavailable"]
    return (
        f"brokers {one} and {other}: {row['verdict']}, "
        f"{row['unavailable']:,} offline, {blocked:,} refuse acks=all"
    )


def _at_risk(found: Told, which: Sequence[str]) -> Markup:
    if not found["count"]:
        return joined()
    rows = [
        (
            row["topic"],
            row["partition"],
            *(row[name] for name in (*which, "scenario")),
            row["leader_before"],
            leader(row["leader"]),
            row["isr"] or "none",
            row["risks"],
            row["reason"],
        )
        for row in found["first"]
    ]
    snapshot = (_HEADINGS[name] for name in which)
    after = ("led by", "then by", "ISR then", "risks", "why")
    headings = ("topic", "partition", *snapshot, "scenario", *after)
    matching = f" of topics matching {found['topic']}" if found["topic"] else ""
    return section("Partitions at risk", table(shown_of(found, f"rows{matching}"), headings, rows))


def _cut_sets(found: Told) -> Markup:
    if not found["count"]:
        return joined()
    rows = [
        (row["risk"], row["k"], row["units"] or row["brokers"], row["partitions"], row["topics"])
        for row in found["first"]
    ]
    return section(
        "The smallest losses that hurt",
        table(
            shown_of(found, "minimal sets"),
            ("risk", "size", "brokers or units", "partitions", "topics"),
            rows,
        ),
        note="Losing all of a set makes the risk come true; losing less of it does not.",
    )


def _restart(found: Told, moves: Told, plan: Told) -> Markup:
    rounds = found["first"]
    if not rounds:
        return joined()
    # In the order they go, so that the rounds are steps of a staircase.
    going = sum(len(row["brokers"]) for row in rounds)
    share = going if going <= charts.MOST_ROWS else max(1, charts.MOST_ROWS // len(rounds))
    ids = [broker for row in rounds for broker in row["brokers"][:share]]
    drawing = charts.schedule(
        "Which brokers are down in which round", ids, [r["brokers"] for r in rounds]
    )
    drawn = amount(going, "broker")
    drawn += "" if len(ids) == going else f", up to {share} of each round shown"
    rows = [
        (
            row["round"],
            _some(row["brokers"]),
            row["partitions"],
            row["at_min_isr"],
            row["spare"],
            None if row["topic"] is None else f"{row['topic']}-{row['partition']}",
        )
        for row in rounds
    ]
    headings = ("round", "brokers", "partitions", "at min ISR", "to spare", "the tightest")
    moved = [(r["topic"], r["partition"], r["from_broker"], r["to_broker"]) for r in moves["first"]]
    answer = f"May they be restarted: {plan['verdict']}."
    why = "".join(f" {note[0].upper()}{note[1:]}." for note in plan["notes"])
    if plan["verdict"] != "yes":
        why += " The rounds hold for all other partitions."
    return section(
        "A rolling restart, round by round",
        tag("p", tag("strong", answer), why, class_="callout"),
        table(shown_of(found, "rounds"), headings, rows),
        grid(
            charts.figure("Down, round by round", drawn, drawing),
            table(
                f"Moves that make it shorter: {shown_of(moves, 'replicas')}",
                ("topic", "partition", "from", "to"),
                moved,
            )
            if moved
            else joined(),
        ),
        note="Partitions that any restart of theirs blocks, whatever the order, are not counted.",
    )


def _some(brokers: Sequence[int]) -> str:
    named = ", ".join(map(str, brokers[: charts.MOST_ROWS]))
    more = len(brokers) - charts.MOST_ROWS
    return f"{named} and {more:,} more" if more > 0 else named


def _recovery(found: Told) -> Markup:
    if not found["count"]:
        return joined()
    rows = [
        (
            row["topic"],
            row["partition"],
            row["brokers"] or "none",
            row["condition"],
            row["unclean_choice"],
            row["records_at_risk_reason"],
        )
        for row in found["first"]
    ]
    headings = ("topic", "partition", "bring back any of", "if", "else, unclean", "what that costs")
    return section(
        "Offline now: who brings it back",
        table(shown_of(found, "partitions"), headings, rows),
    )
