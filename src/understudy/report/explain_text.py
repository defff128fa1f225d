"""The story of one partition, gathered into plain values and told in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from understudy.controller.words import NO_LEADER
from understudy.questions.history.divergence import UNEXPLAINED
from understudy.report.tables import amount, listed, of_which, wrapped

Told = dict[str, Any]

TELLING: Final[dict[str, Sequence[str]]] = {
    "partition_states": ("snapshot_id", "scenario"),
    "decisions": ("snapshot_id", "scenario", "event", "step"),
    "changes": ("snapshot_id", "field"),
    "divergences": ("snapshot_id", "field"),
    "findings": ("taken_at", "rule"),
    "impact_partitions": ("snapshot_id", "scenario"),
}
"""The tables of a published run that tell something about a partition, and their order."""


# --- Gathering ---------------------------------------------------------------------------------


def present(row: DataFrame) -> Told:
    (found,) = row.collect()
    return found.asDict(recursive=True)


def live_replicas(now: Told) -> list[int]:
    live = {b["broker_id"] for b in now["brokers"] or () if b["alive"] and not b["shutting_down"]}
    return [replica for replica in now["replicas"] or () if replica in live]


def outcomes(states: DataFrame, decisions: DataFrame) -> list[Told]:
    """What each scenario makes of the partition, with the elections on the way."""
    tried: dict[str, list[Told]] = {}
    for row in decisions.orderBy("scenario", "event", "step").collect():
        tried.setdefault(row.scenario, []).append(row.asDict(recursive=True))
    columns = ("scenario", "leader", "isr", "leader_epoch", "state_after", "outcome", "reason")
    return [
        {**row.asDict(), "decisions": tried.get(row.scenario, [])}
        for row in states.select(*columns).orderBy("scenario").collect()
    ]


# --- Telling -----------------------------------------------------------------------------------


def as_text(told: Told) -> str:
    if "run_id" in told:
        blocks = [[_run_headline(told)], *_run_blocks(told["tables"])]
    else:
        blocks = [
            [_headline(told)],
            ["Now", *_indented(_now(told["now"]))],
            _past_block(told["past"]),
            _next_block(told["next"]),
        ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: Told) -> str:
    now = told["now"]
    when = f", taken at {now['taken_at']}" if now["taken_at"] else ""
    return f"{told['partition']} in snapshot {now['snapshot_id']} of {now['cluster']}{when}"


def _indented(sentences: Iterable[str], by: str = "  ") -> list[str]:
    return [by + line for sentence in sentences for line in wrapped(sentence, 98 - len(by))]


def _ids(ids: Iterable[int] | None) -> str:
    if ids is None:
        return "unknown"
    return ", ".join(map(str, ids)) or "nobody"


def _now(now: Told) -> list[str]:
    if now["replicas"] is None:
        return ["The partition is not there."]
    sentences = [*_leadership(now), *_absent(now)]
    if now["adding"] or now["removing"]:
        sentences.append(
            f"A reassignment is in flight: {_ids(now['adding'])} to be added,"
            f" {_ids(now['removing'])} to be removed."
        )
    if now["queued_for_deletion"]:
        sentences.append("The topic is queued for deletion.")
    sentences += _writable(now)
    if now["unclean_allowed"]:
        sentences.append("Unclean election is allowed: a replica out of sync may lead.")
    return sentences


def _leadership(now: Told) -> list[str]:
    assigned = f"the assigned replicas are {_ids(now['replicas'])}"
    if not now["has_state"]:
        return [f"It never had a leader; {assigned}."]
    epochs = f"leader epoch {now['leader_epoch']}, partition epoch {now['partition_epoch']}"
    if now["leader"] == NO_LEADER:
        return [f"It has no leader ({epochs}); last in sync: {_ids(now['isr'])}; {assigned}."]
    preferred = ""
    if now["replicas"] and now["leader"] != now["replicas"][0]:
        preferred = f" Its preferred leader would be {now['replicas'][0]}."
    return [
        f"Broker {now['leader']} leads it ({epochs}); in sync: {_ids(now['isr'])}; {assigned}."
        + preferred
    ]


def _absent(now: Told) -> list[str]:
    live = set(live_replicas(now))
    absent = [replica for replica in now["replicas"] if replica not in live]
    behind = [r for r in now["replicas"] if r in live and r not in (now["isr"] or ())]
    said = []
    if absent:
        said.append(f"Not alive, or shutting down: {_ids(absent)}.")
    if behind and now["has_state"]:
        said.append(f"Alive but not in sync: {_ids(behind)}.")
    if now["offline_dirs"]:
        said.append(f"Its log directory is offline on {_ids(now['offline_dirs'])}.")
    return said


def _writable(now: Told) -> list[str]:
    if now["min_isr"] is None or now["isr"] is None:
        return []
    in_sync, least = len(now["isr"]), now["min_isr"]
    if now["leader"] == NO_LEADER:
        return []
    fate = "may go on" if in_sync >= least else "is refused"
    return [f"min.insync.replicas is {least} and {in_sync} in sync, so acks=all {fate}."]


def _past_block(past: Told) -> list[str]:
    if not past["count"]:
        return ["What happened", "  No earlier snapshot shows it any different."]
    more = of_which(len(past["first"]), past["count"], which="last")
    lines = [f"What happened: {amount(past['count'], 'snapshot')} with something new{more}"]
    for step in past["first"]:
        lines.append(f"  {step['taken_at'] or ''} {step['snapshot_id']}".rstrip())
        lines += _indented(_step(step), "    ")
    return lines


def _step(step: Told) -> list[str]:
    sentences = [_change(change) for change in step["changes"] or ()]
    sentences += [
        f"Event {event['seq']}, {event['event_type']}: {event['evidence']}."
        for event in sorted(step["events"] or (), key=lambda each: each["seq"])
    ]
    ordered = sorted(step["decisions"] or (), key=lambda each: (each["event"], each["step"] or 0))
    sentences += [_decision(decision) for decision in ordered]
    sentences += [_divergence(each) for each in step["divergences"] or ()]
    return sentences


def _change(change: Told) -> str:
    was, now = change["before"], change["recorded"]
    by = "nothing that is known" if change["reason"] == UNEXPLAINED else change["reason"]
    if was is None:
        return f"{change['field']} is {now} where there was none, by {by}."
    if now is None:
        return f"{change['field']} was {was} and there is none, by {by}."
    return f"{change['field']} was {was} and is {now}, by {by}."


def _decision(decision: Told) -> str:
    tried = ", ".join(f"{c['replica']} {c['verdict']}" for c in decision["candidates"] or ())
    chosen = "nobody" if decision["chosen"] is None else f"broker {decision['chosen']}"
    how = {True: ", cleanly", False: ", uncleanly", None: ""}[decision["clean"]]
    return (
        f"Election ({decision['event_type']}, strategy {decision['strategy']}) tried"
        f" {tried or 'nobody'}: {chosen} is chosen{how}; {decision['reason']}."
    )


def _divergence(each: Told) -> str:
    return (
        f"Not as replayed: {each['field']} should be {each['predicted']} and is"
        f" {each['recorded']} ({each['reason']})."
    )


def _next_block(outcomes: Sequence[Told]) -> list[str]:
    if not outcomes:
        return []
    lines = ["What one failure would make of it"]
    for outcome in outcomes:
        lines += _indented([f"{outcome['scenario']} fails: {_outcome(outcome)}"])
        lines += _indented(map(_decision, outcome["decisions"]), "    ")
    return lines


def _outcome(outcome: Told) -> str:
    reason = f"; {outcome['reason']}" if outcome["reason"] else ""
    if outcome["leader"] in {None, NO_LEADER}:
        return f"nobody leads it ({outcome['outcome']}){reason}."
    return (
        f"broker {outcome['leader']} leads it in leader epoch {outcome['leader_epoch']}, in sync:"
        f" {_ids(outcome['isr'])} ({outcome['outcome']}){reason}."
    )


# --- A published run ---------------------------------------------------------------------------


def _run_headline(told: Told) -> str:
    return f"{told['partition']} in run {told['run_id']} ({told['job']}) of {told['root']}"


def _run_blocks(tables: Told) -> list[list[str]]:
    words = {
        "partition_states": ("What became of it", _state),
        "decisions": ("Elections", _with_scenario),
        "changes": ("What changed", lambda row: _in_snapshot(row, _change(row))),
        "divergences": ("Not as replayed", lambda row: _in_snapshot(row, _divergence(row))),
        "findings": ("Findings", _finding),
        "impact_partitions": ("Risks", _risk),
    }
    blocks = []
    for name, (heading, sentence) in words.items():
        found = tables.get(name)
        if found and found["count"]:
            lines = _indented(map(sentence, found["first"]))
            blocks.append([f"{heading}: {listed(found, 'row')}", *lines])
    return blocks


def _in_snapshot(row: Told, sentence: str) -> str:
    return f"{row['snapshot_id']}: {sentence}"


def _where(row: Told) -> str:
    return f"{row['snapshot_id']}, scenario {row['scenario']}"


def _state(row: Told) -> str:
    was = (
        "nobody" if row["leader_before"] in {None, NO_LEADER} else f"broker {row['leader_before']}"
    )
    return f"{_where(row)}: {was} led it; {_outcome(row)}"


def _with_scenario(row: Told) -> str:
    return f"{_where(row)}, event {row['event']}: {_decision(row)}"


def _finding(row: Told) -> str:
    return f"{row['snapshot_id']}, {row['severity']}: {row['rule']}; {row['evidence']}"


def _risk(row: Told) -> str:
    return f"{_where(row)}: {', '.join(row['risks'] or ()) or 'none'}; {row['reason']}"
