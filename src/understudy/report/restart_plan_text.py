"""The answer of ``plan-restart`` for a person: the rounds as rows, and what is in the way."""

from __future__ import annotations

from typing import Any, Final

from understudy.report.tables import amount, of_which, size, table, wrapped

_VERDICTS: Final = {"yes": "yes", "no": "no", "cannot-decide": "cannot decide"}
_TOO_FEW: Final = {
    "replicas": "no more replicas than min ISR",
    "in_sync": "no more in sync than min ISR now: wait for the others",
}


def as_text(told: dict[str, Any]) -> str:
    blocks = [
        _headline(told),
        _rounds(told),
        _unsavable(told),
        _conflicts(told),
        _fixes(told),
        _replay(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: dict[str, Any]) -> list[str]:
    rounds = told["proposed_rounds"]
    brokers = amount(len(told["brokers"]), "broker")
    lines = [f"Rolling restart of {brokers}: {_VERDICTS[told['verdict']]}."]
    if told["reason"]:
        lines += wrapped(f"{told['reason'][0].upper()}{told['reason'][1:]}.")
    if told["verdict"] != "yes" and rounds:
        lines.append("The rounds below hold for all other partitions.")
    lines += wrapped(_how_many(told))
    if told["down"]:
        lines += wrapped(f"Down already, and not restarted: {_ids(told['down'])}.")
    taken = f", taken {told['taken_at']}" if told["taken_at"] else ""
    return [*lines, f"Judged by snapshot {told['snapshot_id']} of {told['cluster']}{taken}."]


def _how_many(told: dict[str, Any]) -> str:
    rounds = amount(len(told["proposed_rounds"]), "round")
    if told["is_fewest"]:
        text = f"{rounds}, and no plan has fewer."
    elif told["is_exact"]:
        text = f"{rounds} found, at least {told['at_least']} needed."
    else:
        text = f"{rounds} found; partitions with many replicas were taken to have a slack of 1."
    if len(told["apart"]) > 1 and len(told["apart"]) == told["at_least"]:
        text += f" No two of these may go together: {_ids(told['apart'])}."
    return text


def _rounds(told: dict[str, Any]) -> list[str]:
    if not told["tightest"]:
        return []
    rows = [
        (
            each["round"],
            len(each["brokers"]),
            each["partitions"],
            each["at_min_isr"],
            _witness(each),
            _ids(each["brokers"]),
        )
        for each in told["tightest"]
    ]
    headings = ("round", "down", "partitions", "at min ISR", "tightest partition", "brokers")
    return table(headings, rows)


def _witness(each: dict[str, Any]) -> str:
    if each["topic"] is None:
        return "-"
    left = each["in_sync"] - each["down"]
    return f"{each['topic']}-{each['partition']}: {left} in sync, min ISR {each['min_isr']}"


def _unsavable(told: dict[str, Any]) -> list[str]:
    if not told["unsavable_count"]:
        return []
    rows = [
        (f"{u['topic']}-{u['partition']}", u["in_sync"], u["min_isr"], _TOO_FEW[u["too_few"]])
        for u in told["unsavable"]
    ]
    count, only_now = told["unsavable_count"], told["unsavable_now_count"]
    until = f", {only_now:,} of them until replicas have caught up" if only_now else ""
    return [
        f"No order saves {amount(count, 'partition')}{until}{of_which(len(rows), count)}",
        *table(("partition", "in sync", "min ISR", ""), rows),
    ]


def _conflicts(told: dict[str, Any]) -> list[str]:
    if not told["conflict_count"]:
        return []
    rows = [
        (_ids(c["brokers"]), c["partitions"], f"{c['topic']}-{c['partition']}")
        for c in told["conflicts"]
    ]
    what = f"In the way of {amount(told['fixes_rounds'], 'round')}"
    count = amount(told["conflict_count"], "set") + " of brokers that may not go together"
    return [
        f"{what}: {count}{of_which(len(rows), told['conflict_count'])}",
        *table(("brokers", "partitions", "for example"), rows),
    ]


def _fixes(told: dict[str, Any]) -> list[str]:
    if told["fixes_rounds"] is None:
        return []
    rounds = amount(told["fixes_rounds"], "round")
    fewest = (
        "no fewer are enough"
        if told["fix_count"] == told["fixes_at_least"]
        else f"at least {told['fixes_at_least']:,} are needed"
    )
    moves = amount(told["fix_count"], "replica move")
    rows = [(f"{f['topic']}-{f['partition']}", f["from"], f["to"], f["replicas"])
            for f in told["fixes"]]  # fmt: skip
    homeless = told["fixes_homeless"]
    more = f"; {amount(homeless, 'partition')} found no other broker" if homeless else ""
    return [
        f"{rounds} after {moves}, {fewest}{more}{of_which(len(rows), told['fix_count'])}",
        *table(("partition", "from", "to", "replicas then"), rows),
    ]


def _replay(told: dict[str, Any]) -> list[str]:
    if "replay" not in told:
        return []
    rows = [
        (r["round"], r["elections"], r["writes"], r["requests"], size(r["bytes"]),
         r["highest_leader_epoch"])
        for r in told["replay"]["rounds"]
    ]  # fmt: skip
    headings = ("round", "elections", "writes", "requests", "bytes", "highest leader epoch")
    after = told["replay"]["after"]
    lines = ["Replayed through the controller:", *table(headings, rows)]
    if after is not None:
        lines += wrapped(
            f"Afterwards {amount(after['smaller_isr'], 'partition')} with a smaller ISR, "
            f"{after['leaderless']} without a leader, {after['leaders_elsewhere']} led by another "
            "broker than before."
        )
    return lines


def _ids(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))
