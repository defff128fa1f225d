"""The rules of the audit once more, in plain Python over snapshot documents.

Written from what docs/audit.md says of them, one document after the other, to hold the column
expressions against.
"""

# ruff: noqa: C901, PLR0912, PLR0917 - one condition after the other reads best in one place

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from clusters import Document

Finding = tuple[str, str, str | None, int | None, int | None]
"""Snapshot, rule, topic, partition and broker."""

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
UNASSIGNED = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")


class View:
    """One document, with the questions the rules ask of it."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.id: str = doc["snapshot_id"]
        self.kraft = doc["mode"] == "kraft"
        self.at = datetime.fromisoformat(doc["taken_at"])
        self.brokers: dict[int, Document] = {b["id"]: b for b in doc["brokers"]}
        self.alive = {i for i, b in self.brokers.items() if self._alive(b)}
        leaving = {i for i in self.alive if self.brokers[i].get("shutting_down")}
        self.leaving = leaving
        self.live = self.alive - leaving
        self.epoch: int = doc["controller"]["epoch"]
        self.controller: int = doc["controller"]["id"]
        self.racks = {b["rack"] for b in doc["brokers"] if b.get("rack") is not None}
        self.topic_ids = {t["name"]: t.get("id") for t in doc["topics"]}
        self.partitions: dict[tuple[str, int], Part] = {
            (t["name"], p["partition"]): Part(self, t, p)
            for t in doc["topics"]
            if not t.get("queued_for_deletion")
            for p in t["partitions"]
        }

    def _alive(self, broker: Document) -> bool:
        fenced = broker.get("fenced") if self.kraft else None
        alive: bool = broker.get("alive", True) if fenced is None else not fenced
        return alive

    def setting(self, topic: Document, key: str) -> str | None:
        own = self.brokers.get(self.controller, {}).get("configs") or {}
        levels = (
            topic.get("configs") or {},
            own,
            self.doc.get("configs") or {},
            self.doc.get("static_configs") or {},
        )
        return next((level[key] for level in levels if key in level), None)


class Part:
    """One partition in one document."""

    def __init__(self, view: View, topic: Document, doc: Document) -> None:
        state = doc.get("state")
        self.replicas: list[int] = doc["replicas"]
        self.adding: list[int] = doc.get("adding") or []
        self.removing: list[int] = doc.get("removing") or []
        self.has_state = state is not None
        said: Document = state or {}
        self.leader: int = said.get("leader", -1)
        self.isr: list[int] = said.get("isr", [])
        self.elr: list[int] = said.get("elr") or []
        self.leader_epoch: int = said.get("leader_epoch") or 0
        self.epoch: int = said.get("partition_epoch") or 0
        self.controller_epoch: int = said.get("controller_epoch") or 0
        self.recovery: int = said.get("recovery") or 0
        self.offline_dirs = sorted({*(doc.get("offline_dirs") or []), *self._lost(view, doc)})
        self.idle_isr = [r for r in self.isr if r not in view.live]
        self.idle = [r for r in self.replicas if r not in view.live]
        self.dead_isr = [r for r in self.idle_isr if r not in view.leaving]
        self.led = self.leader in view.live and self.leader not in self.offline_dirs
        wanted = int((view.setting(topic, MIN_ISR) or "1").strip())
        first = next((p for p in topic["partitions"] if p["partition"] == 0), None)
        if view.kraft and first is not None:
            wanted = min(wanted, len(first["replicas"]))
        self.min_isr = wanted
        said_unclean = (view.setting(topic, UNCLEAN) or "false").lower()
        self.unclean = (said_unclean if view.kraft else said_unclean.strip()) == "true"
        racks = [view.brokers.get(r, {}).get("rack") for r in self.replicas]
        self.racks = None if None in racks else len(set(racks))

    def _lost(self, view: View, doc: Document) -> Iterator[int]:
        for replica, directory in zip(self.replicas, doc.get("directories") or [], strict=False):
            dirs = view.brokers.get(replica, {}).get("log_dirs") or []
            if replica in view.live and dirs and directory not in (*UNASSIGNED, *dirs):
                yield replica


def judged(history: Sequence[Document], **tuned: float) -> set[Finding]:
    """All that the documents of one cluster, in their order, break."""
    views = [View(doc) for doc in history]
    found: set[Finding] = set()
    for n, view in enumerate(views):
        before = views[n - 1] if n >= 1 else None
        earlier = views[n - 2] if n >= 2 else None
        found |= {(view.id, *each) for each in _partitions(view, before, earlier, tuned)}
        found |= {(view.id, *each) for each in _brokers(view, before, earlier, tuned)}
        found |= {(view.id, *each) for each in _snapshot(view, before)}
    return found


Short = tuple[str, str | None, int | None, int | None]


def _snapshot(view: View, before: View | None) -> Iterator[Short]:
    named = view.controller if view.controller >= 0 else None
    if view.controller < 0 or (not view.kraft and view.controller not in view.alive):
        yield ("controller-count", None, None, named)
    if before is not None and view.epoch < before.epoch:
        yield ("controller-epoch-regression", None, None, named)


def _partitions(
    view: View, before: View | None, earlier: View | None, tuned: dict[str, float]
) -> Iterator[Short]:
    for (topic, number), part in view.partitions.items():
        for rule, broker in _state(view, part):
            yield (rule, topic, number, broker)

        def of(other: View | None, key: tuple[str, int] = (topic, number)) -> Part | None:
            return None if other is None else other.partitions.get(key)

        was = of(before)
        if before is None or was is None or _renewed(topic, view, before):
            continue
        for rule, broker in _step(view, part, before, was, tuned):
            yield (rule, topic, number, broker)
        first = of(earlier)
        if earlier is None or first is None or _renewed(topic, before, earlier):
            continue
        for rule, broker in _two_steps(view, part, was, earlier, first, tuned):
            yield (rule, topic, number, broker)


def _renewed(topic: str, view: View, before: View) -> bool:
    new, old = view.topic_ids.get(topic), before.topic_ids.get(topic)
    return new is not None and old is not None and new != old


def _state(view: View, p: Part) -> Iterator[tuple[str, int | None]]:
    size = len(p.isr)
    if p.has_state and not p.led:
        yield "offline", p.leader if p.leader >= 0 else None
    if not p.has_state:
        yield "never-led", None
    if p.led and size < p.min_isr:
        yield "under-min-isr", None
    if p.led and size == p.min_isr:
        yield "at-min-isr", None
    if p.led and size < len({*p.replicas} - {*p.adding}):
        yield "under-replicated", None
    if size == 1 and len(p.replicas) > 1:
        yield "last-replica-standing", p.isr[0]
    online = size - len(p.idle_isr)
    if p.led and online == 1 and (not p.unclean or len(p.replicas) - len(p.idle) == 1):
        yield "one-failure-from-offline", p.leader
    if p.offline_dirs:
        yield "offline-log-dir", None
    if p.adding or p.removing:
        yield "reassigning", None
    if p.leader >= 0 and p.leader not in p.isr:
        yield "leader-not-in-isr", p.leader
    outside = [r for r in dict.fromkeys(p.isr) if r not in p.replicas]
    if outside:
        yield "isr-outside-assignment", outside[0]
    if len(set(p.replicas)) < len(p.replicas) or len(set(p.isr)) < size:
        yield "duplicate-replicas", None
    if view.kraft and p.led and p.idle_isr:
        yield "fenced-in-isr", p.idle_isr[0]
    if len(p.replicas) == 1:
        yield "rf-one", p.replicas[0]
    if len(p.replicas) > 1 and len(p.replicas) == p.min_isr:
        yield "rf-eq-minisr", None
    if len(p.replicas) < p.min_isr:
        yield "minisr-gt-rf", None
    most = min(len(p.replicas), len(view.racks))
    if len(p.replicas) > 1 and p.racks is not None and p.racks < most:
        yield "rack-blind", None


def _step(
    view: View, p: Part, before: View, was: Part, tuned: dict[str, float]
) -> Iterator[tuple[str, int | None]]:
    if not p.has_state or not was.has_state:
        return
    seconds = int((view.at - before.at).total_seconds())
    elected = p.leader_epoch > was.leader_epoch
    was_eligible = p.leader in (*was.isr, *was.elr)
    recovers = p.recovery == 1 and was.recovery != 1
    nobody_joined = (
        p.epoch - was.epoch <= p.leader_epoch - was.leader_epoch
        and not {*p.isr} & {*was.isr}
        and p.leader not in was.adding
    )
    first_after_none = was.leader < 0 and p.leader_epoch == was.leader_epoch + 1
    on_the_old_isr = nobody_joined or first_after_none
    began_again = p.leader_epoch <= 1 and p.epoch < was.epoch
    if p.leader >= 0 and elected and (recovers or (not was_eligible and on_the_old_isr)):
        yield "unclean-election", p.leader
    if p.leader_epoch < was.leader_epoch and not began_again:
        yield "leader-epoch-regression", None
    if p.epoch < was.epoch and not began_again:
        yield "partition-epoch-regression", None
    older = p.controller_epoch < was.controller_epoch and not began_again
    if not view.kraft and (older or (elected and p.controller_epoch < before.epoch)):
        yield "zombie-controller", None
    stayed = p.leader == was.leader and p.leader_epoch == was.leader_epoch
    dead_leader = p.leader >= 0 and p.leader in p.dead_isr and p.leader in was.dead_isr
    if dead_leader and stayed and seconds >= tuned.get("failure-during-failover", 10):
        yield "failure-during-failover", p.leader
    stale = [r for r in dict.fromkeys(p.dead_isr) if r in was.dead_isr]
    if p.led and stale and seconds >= tuned.get("stale-isr-after-failover", 10):
        yield "stale-isr-after-failover", stale[0]
    had_none_to_spare = len(was.isr) == was.min_isr and len(was.isr) < len(was.replicas)
    went = [r for r in was.isr if r not in was.idle_isr and r in p.idle]
    if had_none_to_spare and was.led and not (p.led and len(p.isr) >= p.min_isr) and went:
        named = [r for r in dict.fromkeys(was.isr) if r in p.idle]
        yield "drain-two-pods", named[0]


def _two_steps(
    view: View, p: Part, was: Part, earlier: View, first: Part, tuned: dict[str, float]
) -> Iterator[tuple[str, int | None]]:
    seconds = int((view.at - earlier.at).total_seconds())
    leaders = (first.leader, was.leader, p.leader)
    changed = min(leaders) >= 0 and leaders[0] != leaders[1] != leaders[2]
    known = p.has_state and was.has_state and first.has_state
    if known and changed and seconds <= tuned.get("fast-double-failover", 30):
        yield "fast-double-failover", p.leader
    all_online = not any(each.idle or each.offline_dirs for each in (p, was, first))
    unmoved = known and p.epoch == was.epoch == first.epoch and p.replicas == first.replicas
    lacks = p.led and len(p.isr) < len(p.replicas)
    if lacks and all_online and unmoved and seconds >= tuned.get("stuck-under-replicated", 60):
        yield "stuck-under-replicated", None


def _brokers(
    view: View, before: View | None, earlier: View | None, tuned: dict[str, float]
) -> Iterator[Short]:
    parts = [p for p in view.partitions.values() if p.has_state]
    all_leaders = sum(_leads(b, parts) for b in view.brokers)
    returned = [b for b in view.brokers if _returned(b, view, before, earlier)]
    for b in sorted({replica for p in parts for replica in p.replicas} - view.alive):
        yield ("broker-down", None, None, b)
    for b, doc in view.brokers.items():
        alive = b in view.alive
        was = before.brokers.get(b) if before is not None else None
        leaders = _leads(b, parts)
        if (
            alive
            and len(view.alive) > 1
            and leaders >= tuned.get("at_least", 20)
            and leaders * len(view.alive) > 2.0 * all_leaders
        ):
            yield ("leader-skew", None, None, b)
        preferred = [p for p in parts if p.replicas[0] == b]
        astray = [p for p in preferred if p.leader != b]
        if alive and len(astray) * 100 > 10 * len(preferred):
            yield ("preferred-imbalance", None, None, b)
        if alive and _is_cut_off(b, parts) and not _is_back(b, view, before, tuned):
            yield ("reciprocal-exclusion", None, None, b)
        address = doc.get("endpoints")
        same = [i for i in view.alive if view.brokers[i].get("endpoints") == address]
        if alive and address is not None and len(same) > 1:
            yield ("same-host-two-ids", None, None, b)
        if alive and doc.get("rack") is None and view.racks:
            yield ("missing-rack", None, None, b)
        epoch, old = doc.get("epoch"), (was or {}).get("epoch")
        if epoch is not None and old is not None and before is not None:
            if alive and b in before.alive and epoch > old:
                yield ("bounced-broker", None, None, b)
            if epoch < old:
                yield ("broker-epoch-regression", None, None, b)
        if b in returned and len(returned) >= 2:
            yield ("overloaded-controller-fences-live", None, None, b)


def _leads(broker: int, parts: Sequence[Part]) -> int:
    return sum(p.replicas.count(broker) for p in parts if p.leader == broker and p.led)


def _is_back(b: int, view: View, before: View | None, tuned: dict[str, float]) -> bool:
    """Whether a broker has just come back, as far as the snapshot before tells."""
    if before is None:
        return False
    if b not in before.alive:
        return True
    was, now = before.brokers[b].get("epoch"), view.brokers[b].get("epoch")
    is_renewed = was is not None and now is not None and now > was
    waits = tuned.get("reciprocal-exclusion", 30)
    return is_renewed or (view.at - before.at).total_seconds() < waits


def _is_cut_off(broker: int, parts: Sequence[Part]) -> bool:
    shared = [
        p
        for p in parts
        if p.leader == broker in p.replicas
        and any(r != broker and r not in p.idle for r in p.replicas)
    ]
    followed = [p for p in parts if broker in p.replicas and p.leader != broker and p.led]
    return (
        bool(shared)
        and all(len(p.isr) == 1 for p in shared)
        and bool(followed)
        and not any(broker in p.isr for p in followed)
    )


def _returned(broker: int, view: View, before: View | None, earlier: View | None) -> bool:
    if before is None or earlier is None:
        return False
    told: list[Any] = [other.brokers.get(broker) for other in (view, before, earlier)]
    if None in told:
        return False
    same = told[0].get("epoch") == told[1].get("epoch") == told[2].get("epoch")
    return same and broker in view.alive and broker not in before.alive and broker in earlier.alive
