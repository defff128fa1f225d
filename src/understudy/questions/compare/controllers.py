"""Which controllers are compared, and a snapshot in the terms of each of them.

Every snapshot is forked once for each controller, so that one replay answers for all: the plan does
not grow with controllers, and none is treated otherwise than in a replay of its own. A fork is told
apart by its snapshot id, ``1:s1`` for controller 1; :func:`unforked` takes that away again.

A controller of the other mode is given what the snapshot would be in its world:

- ZooKeeper to KRaft: a broker that is not alive is fenced. Log directories are not known one by
  one, so every broker has one of its own; replicas are still to be assigned to it (MIGRATING), and
  those whose directory is offline have lost theirs (LOST). There is no ELR yet.
- KRaft to ZooKeeper: a fenced broker is not alive, a replica whose directory is not online is in
  ``offline_dirs``, and where the controller is no live broker, the smallest one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.kraft.releases import Rules
from understudy.controller.profiles import KRAFT, PROFILES, ZK, Profile
from understudy.errors import UsageError
from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.scenarios import Scenario
from understudy.snapshot import Snapshots
from understudy.sql import text

NEWEST: Final = {"zk": "3.9", "zk-legacy": "1.0", "kraft": "4.3"}
"""The release of a profile when none is named."""

_AT_LEAST: Final = 2
_MARK: Final = ":"


@dataclass(frozen=True)
class Controller:
    """One side of a comparison; *elr* is None where the snapshot decides."""

    profile: Profile
    release: str
    elr: bool | None = None

    @property
    def label(self) -> str:
        feature = {None: "", True: " elr", False: " no-elr"}[self.elr]
        return f"{self.profile.name} {self.release}{feature}"


def chosen(
    profiles: Sequence[str], releases: Sequence[str], elr: Sequence[bool]
) -> tuple[list[Controller], list[str]]:
    """The combinations that exist, and a sentence for each that does not."""
    unknown = [name for name in profiles if name not in PROFILES]
    if unknown:
        raise UsageError(
            f"--profiles: {', '.join(unknown)} is not one of {', '.join(PROFILES)}",
        )
    wanted = [
        Controller(PROFILES[name], release, feature)
        for name in dict.fromkeys(profiles)
        for release in dict.fromkeys(releases or [NEWEST[name]])
        for feature in (dict.fromkeys(elr) if elr and PROFILES[name] is KRAFT else [None])
    ]
    refusals = {each: _refusal(each) for each in wanted}
    possible = [each for each, refusal in refusals.items() if refusal is None]
    refused = [refusal for refusal in refusals.values() if refusal is not None]
    _check_used(profiles, releases, possible, refused)
    if len(possible) < _AT_LEAST:
        left = ", ".join(each.label for each in possible) or "none"
        raise UsageError("\n  - ".join([f"two controllers are needed; there is {left}", *refused]))
    return possible, refused


def _refusal(controller: Controller) -> str | None:
    profile, release = controller.profile, controller.release
    if not profile.covers(release):
        return f"{profile.name} {release} does not exist: {profile.name} is {profile.span}"
    if controller.elr and not Rules.of(release, release, elr_enabled=True).elr:
        return f"{controller.label} does not exist: eligible leader replicas came with 4.0"
    return None


def _check_used(
    profiles: Iterable[str],
    releases: Iterable[str],
    possible: Sequence[Controller],
    refused: Sequence[str],
) -> None:
    """A profile or a release that no controller has was named in vain."""
    unused = {*profiles} - {each.profile.name for each in possible}
    unused |= {*releases} - {each.release for each in possible}
    if unused:
        about = f"no controller is left of {', '.join(sorted(unused))}"
        raise UsageError("\n  - ".join([about, *refused]))


def for_each(asked: Sequence[Scenario], controllers: Sequence[Controller]) -> list[Scenario]:
    """The scenarios, those about one snapshot once for each of its forks."""
    return [
        each if each.snapshot_id is None else replace(each, snapshot_id=fork)
        for each in asked
        for fork in (
            [None]
            if each.snapshot_id is None
            else [f"{number}{_MARK}{each.snapshot_id}" for number in range(len(controllers))]
        )
    ]


def unforked(table: DataFrame) -> DataFrame:
    """The same under the snapshots' own ids, with ``controller``, the place of the controller."""
    place = f"instr(snapshot_id, {text(_MARK)})"
    return table.withColumns(
        {
            "controller": F.expr(f"CAST(substr(snapshot_id, 1, {place} - 1) AS INT)"),
            "snapshot_id": F.expr(f"substr(snapshot_id, {place} + 1)"),
        }
    )


# --- Forking -----------------------------------------------------------------------------------

_VIEWS: Final = T.StructType(
    [
        T.StructField("number", schemas.INT),
        T.StructField("seen_mode", schemas.STRING),
        T.StructField("seen_release", schemas.STRING),
        T.StructField("seen_elr", schemas.BOOLEAN),
    ]
)


def as_seen_by(snapshots: Snapshots, controllers: Sequence[Controller]) -> Snapshots:
    """Every snapshot once for each controller, in its terms."""
    spark = snapshots.snapshots.sparkSession
    rows = [
        (number, each.profile.mode, each.release, each.elr)
        for number, each in enumerate(controllers)
    ]
    forks = snapshots.snapshots.join(
        F.broadcast(_brokers_known(snapshots.brokers)), on=list(SNAPSHOT_KEY), how="left"
    ).crossJoin(F.broadcast(small_frame(spark, rows, _VIEWS)))
    views = F.broadcast(
        forks.select(*SNAPSHOT_KEY, "number", "seen_mode", "mode", "directories_of")
    )
    return replace(
        snapshots,
        snapshots=_forked(forks, schemas.SNAPSHOTS, _SNAPSHOTS),
        brokers=_forked(_beside(snapshots.brokers, views), schemas.BROKERS, _BROKERS),
        topics=_forked(_beside(snapshots.topics, views), schemas.TOPICS, {}),
        partitions=_forked(_beside(snapshots.partitions, views), schemas.PARTITIONS, _PARTITIONS),
        configs=_forked(_beside(snapshots.configs, views), schemas.CONFIGS, {}),
        provenance=_forked(_beside(snapshots.provenance, views), schemas.PROVENANCE, {}),
        key=None,
    )


def _brokers_known(brokers: DataFrame) -> DataFrame:
    """Per snapshot the live brokers, and the directories each broker has online."""
    return brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr("collect_set(IF(alive, broker_id, NULL)) AS live"),
        F.expr(
            "map_from_entries(collect_list(struct(broker_id,"
            " coalesce(log_dirs, CAST(array() AS ARRAY<STRING>))))) AS directories_of"
        ),
    )


def _beside(table: DataFrame, views: DataFrame) -> DataFrame:
    return table.join(views, on=list(SNAPSHOT_KEY), how="inner")


def _forked(table: DataFrame, schema: T.StructType, seen: dict[str, str]) -> DataFrame:
    said = {"snapshot_id": f"concat(number, {text(_MARK)}, snapshot_id)", **seen}
    return table.selectExpr(
        *(
            f"CAST({said[field.name]} AS {field.dataType.simpleString()}) AS {field.name}"
            if field.name in said
            else field.name
            for field in schema
        )
    )


_TO_KRAFT: Final = f"(mode = {text(ZK.mode)} AND seen_mode = {text(KRAFT.mode)})"
_TO_ZK: Final = f"(mode = {text(KRAFT.mode)} AND seen_mode = {text(ZK.mode)})"

_SNAPSHOTS: Final = {
    "mode": "seen_mode",
    "release": "seen_release",
    # An upgrade of the software leaves the metadata version as it is. The other mode has none of
    # its own, and ELR needs a new one: there it is the newest of the release.
    "metadata_version": "IF(mode = seen_mode AND NOT coalesce(seen_elr, false),"
    " metadata_version, seen_release)",
    "elr_enabled": f"IF(seen_mode = {text(KRAFT.mode)}, coalesce(seen_elr, elr_enabled, false),"
    " NULL)",
    "controller_id": f"IF({_TO_ZK} AND NOT coalesce(array_contains(live, controller_id), false),"
    " array_min(live), controller_id)",
}

# A directory id as Kafka writes them: 16 bytes in 22 characters, the same for the same broker.
_OWN_DIRECTORY: Final = (
    "translate(substr(base64(unhex(md5(concat('directory of ', broker_id)))), 1, 22), '+/', '-_')"
)

_BROKERS: Final = {
    "fenced": f"CASE WHEN {_TO_KRAFT} THEN NOT alive WHEN {_TO_ZK} THEN NULL ELSE fenced END",
    # KRaft remembers a shutdown beyond its end; in ZooKeeper it ends with the broker's znode.
    "shutting_down": f"IF({_TO_ZK}, shutting_down AND alive, shutting_down)",
    "log_dirs": f"IF({_TO_KRAFT}, array({_OWN_DIRECTORY}), log_dirs)",
}

_DIRECTORY: Final = "get(directories, i)"
_IS_LOST: Final = (
    f"({_DIRECTORY} = {text(LOST)} OR ({_DIRECTORY} NOT IN ({text(UNASSIGNED)}, {text(MIGRATING)})"
    f" AND size(directories_of[r]) > 0 AND NOT array_contains(directories_of[r], {_DIRECTORY})))"
)

_PARTITIONS: Final = {
    "offline_dirs": f"IF({_TO_ZK}, filter(replicas, (r, i) -> coalesce({_IS_LOST}, false)),"
    " offline_dirs)",
    "directories": f"IF({_TO_KRAFT}, transform(replicas, r ->"
    f" IF(coalesce(array_contains(offline_dirs, r), false), {text(LOST)}, {text(MIGRATING)})),"
    " directories)",
    "elr": f"IF({_TO_ZK}, NULL, elr)",
    "last_known_elr": f"IF({_TO_ZK}, NULL, last_known_elr)",
}
