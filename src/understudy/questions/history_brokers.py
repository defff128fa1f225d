"""What happened to brokers, to the controller and to settings between two snapshots."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native.sql import NO_IDS, text
from understudy.controller.words import NO_LEADER, UNCLEAN_SETTING
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history_facts import (
    NO_NAMES,
    Place,
    fact,
    ids,
    listing,
    names,
    stated,
    when,
)
from understudy.questions.history_steps import STEP_KEY, added, steps

_LISTS: Final = ("gone", "bounced", "started", "alive", "steady", "quiet")


def broker_steps(brokers: DataFrame, partitions: DataFrame, numbers: DataFrame) -> DataFrame:
    """Each broker in each two successive snapshots, and what became of it.

    *gone*, *started* and *bounced* (a new registration that nobody saw between) are changes of
    liveness; *steady* is the same registration all the time; *quiet* is steady, but no longer in
    sync with anybody.
    """
    followed = (
        partitions.where(f"size(isr) > 1 AND leader <> {NO_LEADER}")
        .selectExpr(*SNAPSHOT_KEY, "explode(isr) AS broker_id")
        .groupBy(*SNAPSHOT_KEY, "broker_id")
        .agg(F.lit(True).alias("is_followed"))
    )
    marked = brokers.join(followed, [*SNAPSHOT_KEY, "broker_id"], "left")
    found = steps(marked, ["broker_id"], numbers)
    known = added(
        found,
        was_alive="coalesce(before.alive, false)",
        is_alive="coalesce(after.alive, false)",
        is_other="coalesce(before.broker_epoch <> after.broker_epoch, false)",
        is_same="coalesce(before.broker_epoch = after.broker_epoch, false)",
    )
    return added(
        known,
        gone="was_alive AND NOT is_alive",
        bounced="was_alive AND is_alive AND is_other",
        started="is_alive AND (NOT was_alive OR is_other)",
        alive="is_alive",
        steady="was_alive AND is_alive AND is_same",
        quiet="was_alive AND is_alive AND is_same AND after.is_followed IS NULL",
    )


def intervals(broker_changes: DataFrame, configs: DataFrame, numbers: DataFrame) -> DataFrame:
    """One row for each two successive snapshots, with lists of brokers by what became of them."""
    lists = broker_changes.groupBy(*STEP_KEY).agg(
        *(
            F.expr(f"array_sort(collect_list(broker_id) FILTER (WHERE {name}))").alias(name)
            for name in _LISTS
        )
    )
    joined = (
        numbers.where("number > 1")
        .join(lists, list(STEP_KEY), "left")
        .join(_unclean_by_default(configs, numbers), list(STEP_KEY), "left")
    )
    known = joined.selectExpr(
        *STEP_KEY,
        "snapshot_id",
        *("is_kraft", "controller_id", "controller_epoch"),
        *("old_controller_id", "old_controller_epoch"),
        *(f"coalesce({name}, {NO_IDS}) AS {name}" for name in _LISTS),
        "coalesce(is_unclean, false) AS is_unclean",
        "greatest(coalesce(controller_epoch - old_controller_epoch, 0), 0) AS failovers",
    )
    return added(
        known,
        # Who is gone together with the controller is seen by the next one, when it starts.
        is_controller_lost="NOT is_kraft AND failovers > 0 AND"
        " coalesce(array_contains(concat(gone, bounced), old_controller_id), false)",
    )


def unclean_settings(configs: DataFrame) -> DataFrame:
    """The settings of unclean election, by scope and name, as *is_unclean*."""
    return configs.where(f"key = {text(UNCLEAN_SETTING)}").selectExpr(
        *SNAPSHOT_KEY, "scope", "name", "lower(trim(value)) = 'true' AS is_unclean"
    )


def _unclean_by_default(configs: DataFrame, numbers: DataFrame) -> DataFrame:
    """What holds for a topic that says nothing: the controller's broker, the cluster, the file."""
    scopes = [
        f"any_value(is_unclean) FILTER (WHERE scope = '{scope}')"
        for scope in ("broker", "cluster", "static")
    ]
    return (
        unclean_settings(configs)
        .join(F.broadcast(numbers), list(SNAPSHOT_KEY))
        .where("scope <> 'broker' OR name = CAST(controller_id AS STRING)")
        .groupBy(*STEP_KEY)
        .agg(F.expr(f"coalesce({', '.join(scopes)})").alias("is_unclean"))
    )


# --- Facts -------------------------------------------------------------------------------------


def failover_facts(known: DataFrame) -> DataFrame:
    """A failover for each epoch; the last is the one that made the controller there is now.

    A new leader of the quorum knows all the old one knew, and its epochs also count elections that
    nobody won.
    """
    is_last = "epoch = controller_epoch"
    each = known.where("failovers > 0").selectExpr(
        "*",
        "explode(sequence(IF(is_kraft, controller_epoch, old_controller_epoch + 1),"
        " controller_epoch)) AS epoch",
    )
    dead = added(
        each,
        dead=f"IF(is_controller_lost AND epoch = old_controller_epoch + 1,"
        f" array_sort(concat(gone, bounced)), {NO_IDS})",
    )
    fields = f"""filter(array(
        IF({is_last} AND controller_id IS NOT NULL,
           concat('"controller": ', controller_id), NULL),
        IF(size(dead) > 0, concat('"dead": ', {ids("dead")}), NULL),
        IF(is_kraft, NULL, '"forget": true'),
        '"type": "controller_failover"'
    ), f -> f IS NOT NULL)"""
    said = """concat(
        'the controller epoch was ', old_controller_epoch, ' and is ', controller_epoch,
        IF(failovers > 1 AND NOT is_kraft, concat(', so there were ', failovers, ' failovers'), ''),
        ', the controller was ', coalesce(old_controller_id, 'unknown'),
        ' and is ', coalesce(controller_id, 'unknown'),
        IF(size(dead) > 0, concat(', and these brokers are gone or registered anew: ',
           array_join(dead, ', ')), ''))"""
    return stated(
        dead,
        when(
            "true",
            fact(
                "controller_failover",
                Place.FAILOVER,
                rank="epoch",
                head=f"concat('{{', array_join({fields}, ', '), '}}')",
                said=said,
            ),
        ),
    )


def broker_facts(broker_changes: DataFrame, known: DataFrame) -> DataFrame:
    one = "concat('[', broker_id, ']')"
    lost_dirs = f"array_except(coalesce(before.log_dirs, {NO_NAMES}), after.log_dirs)"
    changed = added(
        broker_changes.join(
            F.broadcast(known.select(*STEP_KEY, "is_kraft", "is_controller_lost")), list(STEP_KEY)
        ).where("NOT (before <=> after)"),
        shuts_down="coalesce(after.shutting_down, false)"
        " AND NOT (is_same AND coalesce(before.shutting_down, false))",
        lost_dirs=f"IF(is_kraft AND is_same, coalesce({lost_dirs}, {NO_NAMES}), {NO_NAMES})",
        new_dirs="is_kraft AND NOT (before.log_dirs <=> after.log_dirs)"
        " AND coalesce(size(after.log_dirs), 0) > 0",
        is_registered_anew="NOT is_kraft OR before IS NULL OR is_other",
    )
    epoch = "coalesce(concat('epoch ', after.broker_epoch), 'an unknown epoch')"
    was = "coalesce(concat('epoch ', before.broker_epoch), 'an unknown epoch')"
    shut_down = {
        "head": """concat('{"broker": ', broker_id, ', "type": "controlled_shutdown"}')""",
        "said": "concat('broker ', broker_id, ' is in controlled shutdown and was not before')",
    }
    startup = f"""concat('{{"brokers": ', {one},
        IF(after.broker_epoch IS NULL, '', concat(', "epochs": [', after.broker_epoch, ']')),
        IF(new_dirs, concat(', "log_dirs": {{"', broker_id, '": ', {names("after.log_dirs")}, '}}'),
           ''),
        ', "type": "broker_startup"}}')"""
    return stated(
        changed,
        when(
            "(gone OR bounced) AND NOT is_controller_lost AND NOT (is_kraft AND shuts_down)",
            fact(
                "broker_failure",
                Place.FAILURE,
                **listing("broker_failure", "brokers"),
                item="CAST(broker_id AS STRING)",
                nth="broker_id",
                said=f"concat('broker ', broker_id, ' was alive with ', {was}, IF(gone,"
                f" ' and is gone', concat(' and is registered anew with ', {epoch})))",
            ),
        ),
        when(
            "started AND is_registered_anew",
            fact(
                "broker_startup",
                Place.STARTUP,
                rank="coalesce(after.broker_epoch, 0)",
                head=startup,
                said=f"concat('broker ', broker_id, IF(was_alive, concat(' had ', {was}),"
                f" ' was not alive'), ' and is alive with ', {epoch})",
            ),
        ),
        when(
            "started AND NOT is_registered_anew",
            fact(
                "unfence",
                Place.STARTUP,
                rank="coalesce(after.broker_epoch, 0)",
                head=f"""concat('{{"brokers": ', {one}, ', "type": "unfence"}}')""",
                said=f"concat('broker ', broker_id, ' was fenced and is not, with ', {epoch})",
            ),
        ),
        when(
            "shuts_down",
            fact("controlled_shutdown", Place.SHUTDOWN, rank="2L * broker_id", **shut_down),
        ),
        # The second heartbeat is the one that fences it, when it leads nothing any more.
        when(
            "is_kraft AND shuts_down AND gone",
            fact("controlled_shutdown", Place.SHUTDOWN, rank="2L * broker_id + 1", **shut_down),
        ),
        when(
            "size(lost_dirs) > 0",
            fact(
                "log_dir_failure",
                Place.LOG_DIR,
                head=f"""concat('{{"broker": ', broker_id, ', "dirs": ', {names("lost_dirs")},
                    ', "type": "log_dir_failure"}}')""",
                said="concat('broker ', broker_id, ' had log directories ',"
                " array_join(before.log_dirs, ', '), ' and has ',"
                " array_join(after.log_dirs, ', '))",
            ),
        ),
        when(
            "is_kraft AND after IS NULL",
            fact(
                "unregister",
                Place.UNREGISTRATION,
                **listing("unregister", "brokers"),
                item="CAST(broker_id AS STRING)",
                nth="broker_id",
                said=f"concat('broker ', broker_id, ' was registered with ', {was}, ' and is not')",
            ),
        ),
    )


def setting_facts(configs: DataFrame, topic_changes: DataFrame, numbers: DataFrame) -> DataFrame:
    """Unclean election switched on, for a topic that was there or by default."""
    switched = steps(unclean_settings(configs), ["scope", "name"], numbers).where(
        "after.is_unclean AND NOT coalesce(before.is_unclean, false)"
    )
    new = topic_changes.where("before IS NULL").selectExpr(
        *STEP_KEY, "topic AS name", "'topic' AS scope"
    )
    of_old = switched.join(new, [*STEP_KEY, "scope", "name"], "left_anti").join(
        F.broadcast(numbers.select(*STEP_KEY, "controller_id")), list(STEP_KEY)
    )
    topic = "IF(scope = 'topic', name, NULL)"
    return stated(
        of_old,
        when(
            "scope IN ('topic', 'cluster') OR"
            " (scope = 'broker' AND name = CAST(controller_id AS STRING))",
            fact(
                "unclean_enabled",
                Place.UNCLEAN_ENABLED,
                head=f"""concat('{{', coalesce(concat('"topic": "', {topic}, '", '), ''),
                    '"type": "unclean_enabled"}}')""",
                topic=topic,
                said=f"concat({text(UNCLEAN_SETTING)}, ' was not true and is, for ',"
                f" coalesce(concat('topic ', {topic}), 'every topic that says nothing'))",
            ),
        ),
    )
