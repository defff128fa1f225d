"""KRaft's metadata log in states no recorded cluster was in, and damaged in every way."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

import kraft_log_writer as writer
from kraft_log_samples import Files, files_of
from kraft_log_writer import batch, checkpoint, control, log, record
from understudy.errors import UsageError
from understudy.sources.content import Content, Parsed
from understudy.sources.kraft_directory import Asked, asked, plan, snapshots
from understudy.sources.kraft_image import LOST, MIGRATING, UNASSIGNED

LOG = "00000000000000000000.log"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAACg"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAACw"
DIRS = ["AAAAAAAAAAAAAAAAAAAAyA", "AAAAAAAAAAAAAAAAAAAAyQ"]

Pair = tuple[bytes | None, bytes | None]

LEADER = control("LEADER_CHANGE", leaderId=9)
NO_OP = record("NO_OP_RECORD")
BEGIN = record("BEGIN_TRANSACTION_RECORD", name="x")
END = record("END_TRANSACTION_RECORD")
ABORT = record("ABORT_TRANSACTION_RECORD", reason="y")
TOPIC = record("TOPIC_RECORD", name="orders", topicId=TOPIC_ID)


def version(level: int) -> Pair:
    return record("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=level)


def broker(broker_id: int, epoch: int, *, newest: int = 30, dirs: list[str] | None = None) -> Pair:
    feature = {
        "name": "metadata.version",
        "minSupportedVersion": 7,
        "maxSupportedVersion": newest,
    }
    return record(
        "REGISTER_BROKER_RECORD",
        3,
        brokerId=broker_id,
        isMigratingZkBroker=False,
        incarnationId=OTHER_ID,
        brokerEpoch=epoch,
        endPoints=[{"name": "PLAINTEXT", "host": "h", "port": 65535, "securityProtocol": 0}],
        features=[feature],
        rack=None,
        fenced=False,
        inControlledShutdown=False,
        **({"logDirs": dirs} if dirs else {}),
    )


def partition(number: int = 0, version: int = 2, **changed: writer.Value) -> Pair:
    data: dict[str, writer.Value] = {
        "partitionId": number,
        "topicId": TOPIC_ID,
        "replicas": [1, 2],
        "isr": [2, 1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 3,
        "partitionEpoch": 7,
        "directories": [UNASSIGNED, UNASSIGNED],
    }
    return record("PARTITION_RECORD", version, **{**data, **changed})


def change(number: int = 0, version: int = 2, **changed: writer.Value) -> Pair:
    return record(
        "PARTITION_CHANGE_RECORD", version, partitionId=number, topicId=TOPIC_ID, **changed
    )


def config(kind: int, owner: str, name: str, value: str | None) -> Pair:
    return record("CONFIG_RECORD", resourceType=kind, resourceName=owner, name=name, value=value)


def read(data: bytes, wanted: Asked | None = None, name: str = LOG) -> Parsed:
    (parsed,) = snapshots([(name, data)], wanted or Asked("c"))
    return parsed


def state(*batches: list[Pair]) -> Content:
    parsed = read(log([LEADER], *batches))
    assert parsed.problems == ()
    assert parsed.content is not None
    return parsed.content


def problem(data: bytes, name: str = LOG) -> str:
    parsed = read(data, name=name)
    assert parsed.content is None
    (said,) = parsed.problems
    return said


# --- States ------------------------------------------------------------------------------------


def test_without_a_feature_record_the_level_is_the_first() -> None:
    found = state([NO_OP])
    assert found.snapshot[1:9] == ("kraft", "kraft", None, "3.0-IV1", False, 9, 1, True)


def test_an_aborted_or_unfinished_transaction_has_not_happened() -> None:
    kept = [version(21), TOPIC, partition()]
    whole = state([BEGIN, *kept, END])
    assert [row[0] for row in whole.topics] == ["orders"]
    assert whole.snapshot_id == "offset-5"
    aborted = state([NO_OP], [BEGIN, *kept], [ABORT])
    assert (aborted.topics, aborted.snapshot_id) == ([], "offset-6")
    unfinished = state([NO_OP], [BEGIN, *kept], [NO_OP])
    assert (unfinished.topics, unfinished.snapshot_id) == ([], "offset-1")


def test_a_change_moves_the_epochs() -> None:
    start = [TOPIC, partition()]
    (row,) = state(start, [change(isr=[1])]).partitions
    assert (row[7], row[8], row[9], row[10]) == (1, 3, [1], 8)
    (row,) = state(start, [change(leader=1)]).partitions  # the same leader, written again
    assert (row[7], row[8], row[10]) == (1, 4, 8)
    (row,) = state(start, [change(leader=-1, isr=[], leaderRecoveryState=1)]).partitions
    assert (row[7], row[8], row[9], row[12]) == (-1, 4, [], 1)
    (row,) = state(
        start, [change(addingReplicas=[3], replicas=[3, 1, 2], directories=[*DIRS, LOST])]
    ).partitions
    assert (row[2], row[3], row[15]) == ([3, 1, 2], [3], [*DIRS, LOST])


def test_clearing_the_elr_moves_only_partitions_that_have_one() -> None:
    start = [TOPIC, partition(0, eligibleLeaderReplicas=[2], lastKnownElr=[1]), partition(1)]
    for topic in ("orders", ""):
        cleared = state(start, [record("CLEAR_ELR_RECORD", topicName=topic)]).partitions
        assert [(row[10], row[13], row[14]) for row in cleared] == [(8, [], []), (7, [], [])]


def test_a_replica_in_a_directory_its_broker_lost_is_offline() -> None:
    brokers = [broker(1, 1, dirs=[DIRS[0]]), broker(2, 2, dirs=DIRS)]
    for directories, offline in (
        ([DIRS[0], DIRS[1]], []),
        ([DIRS[1], DIRS[1]], [1]),
        ([UNASSIGNED, MIGRATING], []),
        ([LOST, LOST], [1, 2]),
    ):
        found = state([*brokers, TOPIC, partition(directories=directories)])
        assert found.partitions[0][5] == offline
    assert state([broker(1, 1), TOPIC, partition(directories=DIRS)]).partitions[0][5] == []
    failed = record(
        "BROKER_REGISTRATION_CHANGE_RECORD", 2, brokerId=2, brokerEpoch=2, logDirs=[DIRS[1]]
    )
    found = state([*brokers, TOPIC, partition(directories=[DIRS[0], DIRS[0]])], [failed])
    assert found.partitions[0][5] == [2]


def test_records_from_before_directories_and_registration_changes() -> None:
    fence = record("FENCE_BROKER_RECORD", id=1, epoch=1)
    found = state([broker(1, 1, newest=7), TOPIC, partition(version=0)], [fence])
    assert found.brokers[0][1:4] == (False, False, True)
    assert found.partitions[0][15] == [MIGRATING, MIGRATING]
    assert found.snapshot[3] == "3.3"
    grown = state([TOPIC, partition(version=0)], [change(version=0, replicas=[1, 2, 3])])
    assert grown.partitions[0][15] == [MIGRATING] * 3
    unfence = record("UNFENCE_BROKER_RECORD", id=1, epoch=1)
    assert state([broker(1, 1)], [fence], [unfence]).brokers[0][1] is True


def test_settings_and_what_is_not_told() -> None:
    found = state(
        [
            TOPIC,
            partition(),
            config(2, "orders", "min.insync.replicas", "2"),
            config(2, "orders", "retention.ms", "1"),
            config(2, "orders", "retention.ms", None),
            config(2, "gone", "retention.ms", "1"),
            config(4, "", "unclean.leader.election.enable", "true"),
            config(4, "7", "log.cleaner.threads", "2"),
            config(4, "7", "listener.name.x.ssl.keystore.password", "hush"),
            config(32, "group", "a", "b"),
        ]
    )
    assert found.configs == [
        ("broker", "7", "log.cleaner.threads", "2"),
        ("cluster", None, "unclean.leader.election.enable", "true"),
        ("topic", "orders", "min.insync.replicas", "2"),
    ]
    assert "Kafka reads an integer" in problem(
        log([LEADER], [TOPIC, partition(), config(2, "orders", "min.insync.replicas", "x")])
    )


def test_a_removed_topic_takes_its_settings_along() -> None:
    removed = record("REMOVE_TOPIC_RECORD", topicId=TOPIC_ID)
    again = record("TOPIC_RECORD", name="orders", topicId=OTHER_ID)
    found = state([TOPIC, partition(), config(2, "orders", "retention.ms", "1")], [removed, again])
    assert (found.topics, found.partitions, found.configs) == (
        [("orders", OTHER_ID, False)],
        [],
        [],
    )


def test_releases_that_do_not_agree_are_not_known() -> None:
    assert state([broker(1, 1, newest=29), broker(2, 2, newest=30)]).snapshot[3] is None


def test_records_nobody_asks_for_are_passed_over() -> None:
    secret = (None, b"\x01\x0b\x00 whatever a SCRAM credential holds")
    assert state([secret, TOPIC, partition()]).snapshot_id == "offset-3"


def test_an_instant_inside_a_batch() -> None:
    data = log([LEADER], [TOPIC, partition(0), partition(1)])
    parsed = read(data, Asked("c", offset=2))
    assert parsed.content is not None
    assert len(parsed.content.partitions) == 1
    at = asked(cluster="c", at="2023-11-14T22:13:20Z")
    parsed = read(data, at)
    assert (parsed.snapshot_id, at.time) == ("offset-0", writer.TIME)


@pytest.mark.parametrize(
    "at", ["offset:", "offset:-1", "zxid:0x1f", "yesterday", "offset:" + "9" * 30]
)
def test_an_instant_that_is_none(at: str) -> None:
    with pytest.raises(UsageError, match="expected offset:812 or a time"):
        asked(at=at)


# --- Files that belong together ------------------------------------------------------------------


def directory(files: Files, wanted: Asked | None = None) -> Parsed:
    asking = wanted or Asked("c")
    (parsed,) = snapshots([(name, files[name]) for name in plan(files, asking)], asking)
    return parsed


def test_a_checkpoint_and_the_log_from_its_end() -> None:
    base = checkpoint(TOPIC, partition(), epoch=3)
    name = "00000000000000000010-0000000003.checkpoint"
    files = {
        name: base,
        "00000000000000000010.log": log([change(isr=[1])], base=10, epoch=3),
        "00000000000000000011.log": log([change(isr=[2])], base=11, epoch=3),
        "00000000000000000005-0000000002.checkpoint": b"not read",
        "00000000000000000012-0000000003.checkpoint.part": b"not read",
        "quorum-state": b'{"leaderId":4,"leaderEpoch":3,"data_version":1}',
    }
    parsed = directory(files)
    assert parsed.content is not None
    assert parsed.content.partitions[0][9:11] == ([2], 9)
    assert parsed.content.snapshot[6:8] == (4, 3)
    del files["00000000000000000010.log"]
    (said,) = directory(files).problems
    missing, _, way_out = said.partition("; ")
    assert missing == "00000000000000000011.log: offsets 10 to 10 are in none of the files"
    assert way_out == f"{name} is whole: by itself it is the state at offset 9"
    assert directory({name: base}).snapshot_id == "offset-9"


def test_a_damaged_log_names_the_newest_checkpoint_that_can_be_used_instead() -> None:
    older, newer = (f"{end:020}-0000000003.checkpoint" for end in (5, 10))
    whole = checkpoint(TOPIC, partition(), epoch=3)
    after = log([change(isr=[1])], [NO_OP], base=10, epoch=3)
    files = {older: whole, newer: whole, "00000000000000000010.log": flipped(after, 70)}
    (said,) = directory(files).problems
    assert said.startswith("00000000000000000010.log, byte 0: ")
    assert said.endswith(f"; {newer} is whole: by itself it is the state at offset 9")
    first = f"{0:020}-0000000000.checkpoint"
    (said,) = directory({first: checkpoint(TOPIC, epoch=0), LOG: flipped(GOOD, 70)}).problems
    assert "is whole" not in said


def test_a_segment_cut_short_before_the_last_is_damage() -> None:
    first = log([LEADER], [TOPIC], [partition()])
    files = {LOG: first[:-1], "00000000000000000003.log": log([NO_OP], base=3)}
    (said,) = directory(files).problems
    assert "bytes more than there are" in said
    assert "the log goes on in 00000000000000000003.log" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (checkpoint(TOPIC, footer=False), "no footer"),
        (checkpoint(TOPIC)[:-3], "a checkpoint must be whole"),
        (checkpoint(TOPIC) + batch(3, [NO_OP]), "more after the footer"),
        (log([TOPIC], [control("SNAPSHOT_FOOTER")]), "begins with a snapshot header"),
        (checkpoint(TOPIC, epoch=2), "of epoch 2 where offset 0 of epoch 1 belongs"),
        (b"", "no footer"),
    ],
)
def test_a_checkpoint_that_is_none(data: bytes, said: str) -> None:
    assert said in problem(data, "00000000000000000010-0000000001.checkpoint")


# --- Refusals ----------------------------------------------------------------------------------

FENCE = record("FENCE_BROKER_RECORD", id=1, epoch=4)
GOOD = log([LEADER], [version(21)], [TOPIC, partition()], [NO_OP])


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "there is no record in these files"),
        (flipped(GOOD, 16), "magic 3 where a record batch has 2"),
        (flipped(GOOD, 70), "CRC-32C of the batch does not match, and other batches follow"),
        (flipped(GOOD, 8), "bytes more than there are, and other batches follow"),
        (batch(0, [NO_OP], attributes=4), "the batch is compressed (zstd)"),
        (GOOD + batch(2, [NO_OP]), "offset 2 comes after offset 4"),
        (GOOD + batch(5, [NO_OP], epoch=2), "epoch 2 follows epoch 1 without a leader change"),
        (log([LEADER], [(None, b"\x00\x14\x00\x00")]), "its frame version is 0, not 1"),
        (log([LEADER], [(None, b"\x01\x63\x00\x00")]), "record type 99 is not known"),
        (log([LEADER], [(None, b"\x01\x03\x09\x00")]), "version 9 of PARTITION_RECORD"),
        (log([LEADER], [(None, b"\x01\x14\x00\x00\x00")]), "1 bytes are left over"),
        (log([LEADER], [(None, b"\x01\x02\x00\x20abc")]), "it ends too early"),
        (log([LEADER], [(None, b"\x01\x02\x00\x03\xff\xff" + bytes(17))]), "is not UTF-8"),
        (log([LEADER], [(None, None)]), "it has no value"),
        (log([LEADER], [(None, b"\x01" + b"\xff" * 12)]), "too many bytes"),
        (log([(b"\x00\x00\x00\x01", b"\x00\x00\x00")]), "control record type 1 does not belong"),
        (log([LEADER], [change()]), "there is no topic with id"),
        (log([LEADER], [TOPIC, change(5)]), "topic orders has no partition 5"),
        (log([LEADER], [TOPIC, TOPIC]), "topic orders is there already"),
        (log([LEADER], [TOPIC, partition(directories=DIRS[:1])]), "1 directories for 2 replicas"),
        (log([LEADER], [END]), "no transaction was begun"),
        (log([LEADER], [BEGIN, BEGIN]), "the transaction before it has no end"),
        (log([LEADER], [version(34)]), "metadata.version 34 is newer"),
        (log([LEADER], [FENCE]), "broker 1 is not registered"),
        (log([LEADER], [broker(1, 5)], [FENCE]), "with epoch 5, not 4"),
        (b"Topic: orders\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n" * 2, "magic"),
    ],
)
def test_a_log_that_is_refused(data: bytes, said: str) -> None:
    assert said in problem(data)


def test_a_log_that_does_not_begin_at_its_beginning() -> None:
    said = problem(log([NO_OP], base=812), "00000000000000000812.log")
    assert said.endswith("the log begins at offset 812, and there is no checkpoint to begin with")


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_the_torn_end_of_a_running_log_is_left_out(cut: int) -> None:
    parsed = read(GOOD[:-cut])
    assert parsed.content is not None
    assert parsed.snapshot_id == "offset-3"
    assert "left out: " in parsed.position
    damaged = read(flipped(GOOD, len(GOOD) - 1))
    assert damaged.content == parsed.content
    assert "CRC-32C of the batch does not match" in damaged.position


def test_zeros_after_the_end_are_no_damage() -> None:
    assert read(GOOD + bytes(4096)) == read(GOOD)


@pytest.mark.parametrize("filler", [b"\xff", b"\x02", b"\x02\xff", b"\x01"])
def test_much_garbage_after_the_end_takes_no_time(filler: bytes) -> None:
    garbage = filler * (2**22 // len(filler))
    assert read(GOOD + garbage).problems or "left out" in read(GOOD + garbage).position
    said = problem(GOOD[:-1] + b"x" + b"\x01" * (65 * 2**20))
    assert said.endswith("more follows than one batch can hold")


def test_records_out_of_time_do_not_hide_later_ones() -> None:
    late = batch(1, [TOPIC, partition()], time=writer.TIME + 9000)
    data = log([LEADER]) + late + batch(3, [change(isr=[1])], time=writer.TIME + 1)
    parsed = read(data, Asked("c", time=writer.TIME + 2))
    assert parsed.snapshot_id == "offset-0"


def test_missing_offsets_are_said() -> None:
    parsed = read(GOOD + batch(9, [NO_OP]))
    assert parsed.content is not None
    assert parsed.content.snapshot[8] is False
    assert parsed.position.endswith("offsets 5 to 8 are missing")


# --- Mutations ---------------------------------------------------------------------------------

REAL = files_of("kraft-3.9")
REAL_LOG = {name: data for name, data in REAL.items() if name.endswith((".log", ".checkpoint"))}
del REAL_LOG["bootstrap.checkpoint"]
NEWEST = 1308


@cache
def truth(offset: int) -> Content | None:
    return directory(REAL_LOG, Asked("c", offset=offset)).content


def flip(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        data = flipped(data, chance.randrange(len(data)), chance.randrange(8))
    return data


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def splice(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data)) for _ in range(2))
    at = chance.randrange(len(data))
    piece = data[start : min(end, start + 400)]
    return data[:at] + piece + data[at + chance.choice((0, len(piece))) :]


def zero(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data)), chance.randrange(1, 200)
    return data[:at] + bytes(len(data[at : at + length])) + data[at + length :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip,
    flip,
    truncate,
    splice,
    zero,
)


def check_mutation(seed: int) -> str:
    chance = random.Random(seed)
    files = dict(REAL_LOG)
    name = chance.choice(sorted(files))
    files[name] = chance.choice(MUTATIONS)(files[name], chance)
    parsed = directory(files)
    if parsed.content is None:
        assert parsed.problems
        assert all(said and "Traceback" not in said for said in parsed.problems)
        return "refused"
    offset = int((parsed.snapshot_id or "")[len("offset-") :])
    if parsed.content.snapshot[8] is False:
        assert "are missing" in parsed.position
        return "incomplete"
    assert parsed.content == truth(offset), (seed, parsed.position)
    return "same" if offset == NEWEST else "earlier"


def test_two_hundred_mutations_are_refused_or_harmless() -> None:
    outcomes = [check_mutation(seed) for seed in range(200)]
    assert outcomes.count("refused") > 50


CHECKPOINT = max(name for name in REAL_LOG if name.endswith(".checkpoint"))


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_mutated_checkpoint_is_refused_or_the_same(count: int) -> None:
    whole = read(REAL_LOG[CHECKPOINT], name=CHECKPOINT).content
    outcomes = []
    for seed in range(count):
        chance = random.Random(seed)
        data = chance.choice(MUTATIONS)(REAL_LOG[CHECKPOINT], chance)
        parsed = read(data, name=CHECKPOINT)
        assert bool(parsed.problems) != (parsed.content == whole), seed
        outcomes.append(bool(parsed.problems))
    assert outcomes.count(True) > count // 2


@pytest.mark.slow
def test_two_thousand_mutations_are_refused_or_harmless() -> None:
    outcomes = [check_mutation(seed) for seed in range(2000)]
    assert outcomes.count("refused") > 500
