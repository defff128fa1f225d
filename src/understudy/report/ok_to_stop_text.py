"""The answer of ``ok-to-stop`` for a person: the verdict, why, and the partitions in the way."""

from __future__ import annotations

from typing import Any, Final

from understudy.report.tables import amount, of_which, table, wrapped

_VERDICTS: Final = {"yes": "yes", "no": "no", "cannot-decide": "cannot decide"}
_RISKS: Final = {
    "unavailable": "no leader is left",
    "full_acks_produce_unavailable": "acks=all is blocked",
}


def as_text(told: dict[str, Any]) -> str:
    blocks = [_headline(told), _blocking(told), _growth(told)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: dict[str, Any]) -> list[str]:
    lines = [f"OK to stop {_ids(told['brokers'])} at once: {_VERDICTS[told['verdict']]}."]
    if told["reason"]:
        lines += wrapped(f"{told['reason'][0].upper()}{told['reason'][1:]}.")
    taken = f", taken {told['taken_at']}" if told["taken_at"] else ""
    return [*lines, f"Judged by snapshot {told['snapshot_id']} of {told['cluster']}{taken}."]


def _blocking(told: dict[str, Any]) -> list[str]:
    if not told["blocking_count"]:
        return []
    rows = [
        (f"{b['topic']}-{b['partition']}", _RISKS[b["risk"]], b["risk"]) for b in told["blocking"]
    ]
    more = of_which(len(rows), told["blocking_count"])
    return [
        f"In the way: {amount(told['blocking_count'], 'partition')}{more}",
        *table(("partition", "what happens", "risk"), rows),
    ]


def _growth(told: dict[str, Any]) -> list[str]:
    if told["max"] is None:
        return []
    more = [broker for broker in told["max"] if broker not in told["brokers"]]
    if not more:
        return ["Nobody else may go with them."]
    limit = "no larger set may" if told["max_is_largest"] else "nobody can be added to these"
    return wrapped(f"May go together: {_ids(told['max'])} ({limit}).")


def _ids(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))
