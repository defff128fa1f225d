"""What is different about topics and partitions from one snapshot to the next, and who did it.

In ZooKeeper mode the two epochs of a partition's record tell who wrote it how often: whatever the
controller writes raises both, an ISR that the leader changes raises the partition epoch alone. The
quorum raises them by other rules, so there only what is seen counts.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.kraft_partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.native.sql import NO_IDS, struct, text
from understudy.controller.words import NO_LEADER
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history_brokers import unclean_settings
from understudy.questions.history_facts import BEFORE_FAILOVER
from understudy.questions.history_steps import STEP_KEY, added, steps

_NO_ISRS: Final = "CAST(array() AS ARRAY<ARRAY<INT>>)"
_NO_DIRECTORIES: Final = ", ".join(text(each) for each in (MIGRATING, UNASSIGNED, LOST))
_MOST_UNSEEN: Final = 50


def topic_steps(topics: DataFrame, numbers: DataFrame) -> DataFrame:
    """Topics that changed; *is_recreated* is another topic under the name of an old one."""
    return added(
        steps(topics, ["topic"], numbers).where("NOT (before <=> after)"),
        is_recreated="coalesce(before.topic_id <> after.topic_id, false)",
        was_queued="coalesce(before.queued_for_deletion, false)",
        is_queued="coalesce(after.queued_for_deletion, false)",
    )


def partition_changes(
    partitions: DataFrame,
    topic_changes: DataFrame,
    configs: DataFrame,
    known: DataFrame,
    numbers: DataFrame,
) -> DataFrame:
    """Partitions that are different, with all that decides which events made them so."""
    is_both = "before IS NOT NULL AND after IS NOT NULL"
    whole = struct(before="before", after="after")
    halves = (
        f"{struct(before='before', after='IF(true, NULL, after)')},"
        f" {struct(before='IF(true, NULL, before)', after='after')}"
    )
    of_topic = topic_changes.selectExpr(
        *STEP_KEY,
        "topic",
        "before IS NULL OR is_recreated AS is_new_topic",
        "is_recreated",
        "is_queued AND NOT was_queued AS is_queued",
    )
    changed = (
        steps(partitions, ["topic", "partition"], numbers)
        .join(F.broadcast(of_topic), [*STEP_KEY, "topic"], "left")
        .where("NOT (before <=> after) OR is_recreated")
        .selectExpr(
            *(*STEP_KEY, "topic", "partition"),
            "coalesce(is_new_topic, false) AS is_new_topic",
            "coalesce(is_recreated, false) AS is_recreated",
            "coalesce(is_queued, false) AS is_queued",
            f"inline(IF(is_recreated AND {is_both}, array({halves}), array({whole})))",
        )
    )
    of_topics = (
        unclean_settings(configs)
        .where("scope = 'topic'")
        .selectExpr(*SNAPSHOT_KEY, "name AS topic", "is_unclean AS is_unclean_topic")
    )
    placed = changed.join(F.broadcast(known), list(STEP_KEY)).join(
        of_topics, [*SNAPSHOT_KEY, "topic"], "left"
    )
    return _reported(_led(_in_sync(_recorded(_assigned(placed)))))


def _assigned(changed: DataFrame) -> DataFrame:
    """The assignments, and what they say of reassignments."""

    def without(replicas: str, others: str) -> str:
        return f"filter({replicas}, r -> NOT array_contains(coalesce({others}, {NO_IDS}), r))"

    def is_pending(side: str) -> str:
        return f"coalesce(size({side}.adding), 0) + coalesce(size({side}.removing), 0) > 0"

    known = added(
        changed,
        is_new="before IS NULL",
        is_kept="before IS NOT NULL AND after IS NOT NULL",
        was_pending=is_pending("before"),
        is_pending=is_pending("after"),
        old_target=without("before.replicas", "before.removing"),
        target=without("after.replicas", "after.removing"),
        origin=without("before.replicas", "before.adding"),
    )
    return added(
        known,
        is_cancelled="is_kept AND was_pending AND NOT is_pending AND target = origin"
        " AND target <> old_target",
        is_reassigned="is_kept AND target <> old_target"
        " AND NOT (was_pending AND NOT is_pending AND target = origin)",
        is_completed="is_kept AND NOT is_pending AND (was_pending OR target <> old_target)"
        " AND NOT (was_pending AND target = origin AND target <> old_target)",
    )


def _recorded(changed: DataFrame) -> DataFrame:
    """The records, and how often who wrote them; a partition never led has epochs zero."""
    return added(
        added(
            changed,
            old_leader=f"coalesce(before.leader, {NO_LEADER})",
            leader=f"coalesce(after.leader, {NO_LEADER})",
            old_isr=f"coalesce(before.isr, {NO_IDS})",
            isr=f"coalesce(after.isr, {NO_IDS})",
            elections="coalesce(after.leader_epoch, 0) - coalesce(before.leader_epoch, 0)",
            writes="coalesce(after.partition_epoch, 0) - coalesce(before.partition_epoch, 0)",
        ),
        by_leaders="IF(is_kraft, NULL, writes - elections)",
        # Nobody but the controller before the failover writes its epoch.
        place_shift="IF(NOT is_kraft AND failovers > 0 AND writes > 0"
        f" AND after.controller_epoch <= old_controller_epoch, {BEFORE_FAILOVER}, 0)",
    )


def _in_sync(changed: DataFrame) -> DataFrame:
    """Who of the ISR is left, when those are taken away that broke off."""
    # The controller alone changed this record and took out a broker that never went away: its log
    # directory failed, or it is about to leave.
    dropped = f"""IF(is_kept AND elections > 0 AND by_leaders = 0 AND target = old_target
        AND NOT was_pending AND NOT is_queued,
        filter(old_isr, r -> array_contains(steady, r) AND array_contains(after.replicas, r)
            AND (NOT array_contains(isr, r) OR (leader = {NO_LEADER} AND old_leader = r))),
        {NO_IDS})"""
    known = added(
        changed,
        dropped=dropped,
        failed_dirs=f"array_except(coalesce(after.offline_dirs, {NO_IDS}),"
        f" coalesce(before.offline_dirs, {NO_IDS}))",
    )
    departing = f"array_contains(quiet, r) AND leader <> {NO_LEADER}"
    parted = added(
        known,
        departed=f"filter(dropped, r -> {departing} AND NOT array_contains(failed_dirs, r))",
        dirless=f"array_distinct(concat(failed_dirs, filter(dropped, r -> NOT ({departing}))))",
    )
    broken_off = "concat(gone, bounced, dropped, failed_dirs)"
    return added(
        parted,
        left_in_sync="filter(IF(is_new, after.replicas, old_isr), r -> array_contains(alive, r)"
        f" AND NOT array_contains({broken_off}, r)"
        " AND (NOT is_new OR (array_contains(isr, r) AND NOT array_contains(started, r))))",
    )


def _led(changed: DataFrame) -> DataFrame:
    """Who leads, and who would without an election that was asked for."""
    known = added(
        changed,
        # Where the controller wrote nothing, leaders took out those who broke off.
        start="CASE WHEN is_kept AND before.has_state AND by_leaders > 0 AND elections = 0"
        " THEN old_isr WHEN size(left_in_sync) > 0 THEN left_in_sync ELSE array(leader) END",
        is_led_on=f"old_leader <> {NO_LEADER} AND array_contains(left_in_sync, old_leader)",
        # The quorum finds these again by itself.
        is_known_eligible=f"array_contains(concat(old_isr, coalesce(before.elr, {NO_IDS}),"
        f" coalesce(before.last_known_elr, {NO_IDS})), leader)",
    )
    led = added(
        known,
        heir="coalesce(IF(is_led_on, old_leader, NULL),"
        " get(filter(coalesce(before.replicas, after.replicas),"
        "   r -> array_contains(left_in_sync, r)), 0),"
        f" get(filter(old_isr, r -> array_contains(started, r)), 0), {NO_LEADER})",
    )
    return added(
        led,
        is_preferred=f"elections > 0 AND leader = after.replicas[0] AND heir <> {NO_LEADER}"
        " AND heir <> leader AND NOT is_reassigned AND NOT is_completed AND NOT is_cancelled",
        is_unclean_election=f"is_kept AND before.has_state AND elections > 0 AND heir = {NO_LEADER}"
        f" AND leader <> {NO_LEADER} AND NOT is_known_eligible"
        " AND NOT coalesce(is_unclean_topic, is_unclean)",
        # The only way for a record to be written anew with all in it as it was.
        is_repeated="is_kept AND NOT is_kraft AND elections = 1 AND leader = old_leader"
        " AND left_in_sync = old_isr AND target = old_target AND was_pending = is_pending",
        rejoined=f"""IF(is_kept AND NOT is_queued AND failovers = 0 AND elections = 2
            AND by_leaders = 1 AND left_in_sync = isr,
            filter(gone, r -> array_contains(old_isr, r)), {NO_IDS})""",
        # Directories that brokers reported for their replicas.
        assigned=f"""IF(is_kraft AND after IS NOT NULL, filter(
            arrays_zip(after.replicas, after.directories),
            d -> d.directories NOT IN ({_NO_DIRECTORIES}) AND IF(is_new, writes > 0,
                NOT (d.directories <=> get(before.directories,
                    CAST(array_position(before.replicas, d.replicas) AS INT) - 1)))),
            NULL)""",
    )


def _reported(changed: DataFrame) -> DataFrame:
    """The ISRs that leaders reported, one after the other, as *reports*."""
    joined = "filter(isr, r -> NOT array_contains(start, r))"
    known = added(
        changed,
        # A report that completes a reassignment was of those who joined and those who leave.
        end=f"""CASE WHEN NOT is_completed THEN isr
            WHEN is_kraft THEN concat(isr, filter(start, r -> NOT array_contains(isr, r)))
            ELSE concat(start, {joined}) END""",
        joined=joined,
        report_count=f"""IF(is_kraft,
            greatest(1, writes
                - size(filter(old_isr, r -> array_contains(concat(gone, bounced), r)))
                - coalesce(size(assigned), 0) - CAST(is_preferred AS INT)
                - CAST(is_kept AND old_leader = {NO_LEADER} AS INT)),
            by_leaders)""",
    )
    # In ZooKeeper mode an ISR loses members where they stand and gains them at its end, so what
    # stayed is the longest beginning of the new one that keeps the order of the old one.
    stayed = """aggregate(end, named_struct('at', 0L, 'count', 0, 'open', true),
        (s, r) -> IF(s.open AND array_position(start, r) > s.at,
            named_struct('at', array_position(start, r), 'count', s.count + 1, 'open', true),
            named_struct('at', s.at, 'count', s.count, 'open', false))).count"""
    in_zookeeper = f"""concat(
        IF(stayed > 0 AND stayed < size(start), array(slice(end, 1, stayed)), {_NO_ISRS}),
        IF(stayed < size(end),
            transform(sequence(stayed + 1, size(end)), n -> slice(end, 1, n)), {_NO_ISRS}))"""
    # Leaders of the quorum report ISRs in an order of their own.
    in_quorum = f"""CASE WHEN size(joined) > 0 THEN transform(joined, (j, n) -> filter(end, r ->
            array_contains(start, r) OR array_contains(slice(joined, 1, n + 1), r)))
        WHEN size(array_except(start, end)) > 0 THEN array(end) ELSE {_NO_ISRS} END"""
    ways = added(added(known, stayed=stayed), way=f"IF(is_kraft, {in_quorum}, {in_zookeeper})")
    # Changes that left no trace but their number: the last follower fell behind and caught up.
    last = "element_at(start, -1)"
    unseen = f"""IF(by_leaders >= size(way) + 2 AND size(start) > 1
        AND {last} NOT IN (leader, old_leader),
        flatten(array_repeat(array(slice(start, 1, size(start) - 1), start),
            least(CAST((by_leaders - size(way)) DIV 2 AS INT), {_MOST_UNSEEN}))),
        {_NO_ISRS})"""
    return added(
        ways,
        reports=f"""CASE
            WHEN leader = {NO_LEADER} OR is_queued OR after IS NULL OR size(rejoined) > 0
                OR report_count <= 0 THEN {_NO_ISRS}
            WHEN report_count < size(way)
                THEN concat(slice(way, 1, CAST(report_count AS INT) - 1), array(end))
            ELSE concat({unseen}, way) END""",
    )
