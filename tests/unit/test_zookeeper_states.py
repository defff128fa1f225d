"""Trees and logs written for the purpose: states and defects that no recorded file shows."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

import zookeeper_writer as zk
from clusters import random_cluster
from understudy.errors import UsageError
from understudy.sources import document
from understudy.sources.content import Content, Parsed
from understudy.sources.zookeeper import forms, history, kafka, txnlog
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.kafka import Naming
from zookeeper_writer import Znode

WANTED = Asked(Naming(release="3.9"))
NAME = "snapshot.64"


def parse(data: bytes, name: str = NAME, wanted: Asked = WANTED) -> list[Parsed]:
    form = forms.recognise(data[: forms.HEAD_BYTES], name) or forms.SNAPSHOT
    return list(forms.parse(data, name, form, wanted))


def read(znodes: Mapping[str, Znode], wanted: Asked = WANTED) -> Content:
    (found,) = parse(zk.snapshot(znodes), wanted=wanted)
    assert found.problems == ()
    assert found.content is not None
    return found.content


def refusal(data: bytes, name: str = NAME, wanted: Asked = WANTED) -> tuple[str, ...]:
    (found,) = parse(data, name, wanted)
    assert found.content is None
    return found.problems


def doc(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - any part of a document
    return {
        "cluster": "c",
        "snapshot_id": "s",
        "controller": {"id": 1, "epoch": 4},
        "brokers": [{"id": 1, "epoch": 77, "rack": "a"}, {"id": 2, "epoch": 78}],
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {
                        "partition": 0,
                        "replicas": [2, 1],
                        "state": {
                            "leader": 2,
                            "leader_epoch": 3,
                            "isr": [1, 2],
                            "partition_epoch": 9,
                            "controller_epoch": 4,
                        },
                    }
                ],
            }
        ],
        **more,
    }


def changed(path: str, value: object) -> dict[str, Znode]:
    """The znodes of :func:`doc` with one of them saying something else."""
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return {**zk.kafka_znodes(doc()), path: Znode(data)}


# --- Kafka's znodes ----------------------------------------------------------------------------


def known_to_zookeeper(found: dict[str, Any]) -> dict[str, Any]:
    """A document without what ZooKeeper does not hold."""
    found = json.loads(json.dumps(found))
    found.pop("static_configs", None)
    dead = {b["id"]: b.get("configs", {}) for b in found["brokers"] if not b.get("alive", True)}
    found["brokers"] = [b for b in found["brokers"] if b["id"] not in dead]
    for broker in found["brokers"]:
        broker.pop("shutting_down", None)
    for topic in found["topics"]:
        for partition in topic["partitions"]:
            partition.pop("offline_dirs", None)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_random_cluster_comes_back_from_its_znodes(seed: int) -> None:
    rng = Random(seed)
    cluster = known_to_zookeeper(random_cluster(rng))
    chroot = rng.choice(["", "/kafka", "/a/b-c"])
    cluster["snapshot_id"] = f"snapshot-0x{0x64:x}"
    naming = Naming(release="3.9", metadata_version=cluster["metadata_version"])
    content = read(zk.kafka_znodes(cluster, chroot=chroot), Asked(naming))
    (parsed,) = document.parse(json.dumps(cluster).encode())
    truth = parsed.content
    assert truth is not None
    assert content.topics == truth.topics
    assert [(*row[:5], *row[6:]) for row in content.partitions] == [
        (*row[:5], *row[6:]) for row in truth.partitions
    ]
    assert content.configs == truth.configs
    assert [row[:2] + row[4:6] for row in content.brokers] == [
        row[:2] + row[4:6] for row in truth.brokers
    ]
    assert content.snapshot[1:8] == ("zk", "zk-snapshot", *truth.snapshot[3:8])
    assert (content.cluster, content.snapshot_id) == (truth.cluster, truth.snapshot_id)


def test_what_zookeeper_does_not_hold_is_unknown() -> None:
    content = read(zk.kafka_znodes(doc()), Asked())
    assert content.snapshot[1:9] == ("zk", "zk-snapshot", None, None, None, 1, 4, True)
    assert content.brokers[0] == (
        1, True, None, None, 77, "a", "PLAINTEXT://host1:9092", None,
    )  # fmt: skip
    assert content.partitions == [
        ("t", 0, [2, 1], [], [], None, True, 2, 3, [1, 2], 9, 4, 0, None, None, None)
    ]


def test_clusters_that_share_a_tree_are_told_apart() -> None:
    znodes = {
        **zk.kafka_znodes(doc(), chroot="/x"),
        **zk.kafka_znodes(doc(cluster="d"), chroot="/y/z"),
        "/consumers/brokers/ids/c1": Znode(),  # a group of consumers with an unlucky name
    }
    found = parse(zk.snapshot(znodes))
    assert [(each.cluster, each.position) for each in found] == [
        ("c", "zxid 0x64 below /x"),
        ("d", "zxid 0x64 below /y/z"),
    ]
    named = parse(zk.snapshot(znodes), wanted=Asked(Naming(cluster="n")))
    assert [each.cluster for each in named] == ["n/x", "n/y/z"]


def test_a_reassignment_in_flight_and_a_queued_topic() -> None:
    topic = doc()["topics"][0]
    topic["queued_for_deletion"] = True
    topic["partitions"][0] |= {"replicas": [3, 2, 1], "adding": [3], "removing": [1]}
    content = read(zk.kafka_znodes(doc(topics=[topic])))
    assert content.topics == [("t", None, True)]
    assert content.partitions[0][2:5] == ([3, 2, 1], [3], [1])
    assert content.snapshot[8] is True


@pytest.mark.parametrize(
    ("target", "removing", "complete"),
    [
        ([2, 3], [1], True),  # replicas [2, 1, 3] keep 2 and 3, in that order
        ([3, 2], [1], False),  # the order asked for is not that of the assignment
        ([4, 5], [], False),  # the controller has not begun
        ([2, 1, 3], [], True),
    ],
)
def test_until_2_3_only_the_request_says_what_an_assignment_will_lose(
    target: list[int],
    removing: list[int],
    complete: bool,  # noqa: FBT001 - the table above reads well
) -> None:
    topic = doc()["topics"][0]
    topic["partitions"][0]["replicas"] = [2, 1, 3]
    znodes = zk.kafka_znodes(doc(topics=[topic]), topic_version=1)
    asked_for = {"topic": "t", "partition": 0, "replicas": target}
    request = json.dumps({"version": 1, "partitions": [asked_for]}).encode()
    content = read({**znodes, "/admin/reassign_partitions": Znode(request)})
    assert content.partitions[0][2:5] == ([2, 1, 3], [], removing)
    assert content.snapshot[8] is complete


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/admin/preferred_replica_election", {"version": 1, "partitions": []}),
        ("/controller", {"version": 2, "brokerid": 3000, "kraftControllerEpoch": 5}),
    ],
)
def test_what_a_new_controller_would_also_act_on_makes_a_snapshot_incomplete(
    path: str, value: object
) -> None:
    assert read(changed(path, value)).snapshot[8] is False


def test_a_partition_that_never_had_a_leader_has_no_state() -> None:
    for empty in (b"", None):
        content = read(changed("/brokers/topics/t/partitions/0/state", empty))
        assert content.partitions[0][6:13] == (False, None, None, None, None, None, None)


def test_a_cluster_without_a_controller() -> None:
    znodes = zk.kafka_znodes(doc())
    del znodes["/controller"], znodes["/controller_epoch"]
    assert read(znodes).snapshot[6:9] == (None, 0, True)


@pytest.mark.parametrize(
    ("registration", "rack", "endpoints"),
    [
        ({"version": 1, "host": "h", "port": 9092}, None, "PLAINTEXT://h:9092"),
        ({"version": 2, "host": None, "port": -1, "endpoints": ["SSL://h:1"]}, None, "SSL://h:1"),
        ({"version": 3, "endpoints": ["A://h:1", "B://i:2"], "rack": "r"}, "r", "A://h:1,B://i:2"),
        ({"version": 5, "endpoints": [], "rack": None, "features": {}}, None, None),
    ],
)
def test_registrations_of_every_version(
    registration: object, rack: str | None, endpoints: str | None
) -> None:
    content = read(changed("/brokers/ids/9", registration))
    assert content.brokers[-1][5:7] == (rack, endpoints)


def test_secrets_of_brokers_are_not_copied() -> None:
    secret = {"listener.name.x.ssl.keystore.password": "enc:abc", "log.cleaner.threads": "2"}
    content = read(changed("/config/brokers/7", {"version": 1, "config": secret}))
    assert ("broker", "7", "log.cleaner.threads", "2") in content.configs
    assert ("broker", "7", "listener.name.x.ssl.keystore.password", "[hidden]") in content.configs


def test_settings_of_a_topic_that_is_gone_are_passed_over() -> None:
    gone = {"version": 1, "config": {"min.insync.replicas": "2"}}
    assert read(changed("/config/topics/gone", gone)).configs == []


STATE = "/brokers/topics/t/partitions/0/state"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (STATE, b"{", f"{STATE}: column 2: the JSON is truncated"),
        (STATE, [1], f"{STATE}: expected an object, found a list"),
        (STATE, {"leader": 1}, f"{STATE}.leader_epoch: expected an integer, found null"),
        (STATE, {"leader": -2}, f"{STATE}.leader: -2 is less than -1"),
        (STATE, b"\xff\xfe", f"{STATE}: byte 1: the text is not UTF-8"),
        (STATE, b"[" * 100_000, f"{STATE}: the JSON is nested too deeply"),
        (
            "/brokers/topics/t",
            {"partitions": {"0": [1, 1], "x": [1]}},
            "/brokers/topics/t.partitions.0[1]: broker 1 stands here twice",
        ),
        ("/brokers/topics/t", {"partitions": {"0": []}}, "a partition has at least one replica"),
        ("/brokers/topics/no good", {}, '"no good" has characters other than'),
        ("/brokers/ids/x", {"version": 5}, '/brokers/ids/x: expected a number, found "x"'),
        ("/brokers/ids/4", b"", "/brokers/ids/4: the registration of a broker is empty"),
        ("/controller_epoch", b"five", '/controller_epoch: expected a number, found "five"'),
        (
            "/config/topics/t",
            {"config": {"min.insync.replicas": "0"}},
            "/config/topics/t.config.min.insync.replicas: Kafka reads an integer of at least 1",
        ),
        ("/config/topics/t", {"config": {"a": 1}}, "expected a string, found 1"),
        ("/admin/reassign_partitions", {"partitions": 3}, "expected a list of objects, found 3"),
        ("/cluster/id", {"version": "1"}, "/cluster/id.id: expected a string, found null"),
    ],
)
def test_a_znode_kafka_could_not_have_written_is_named(
    path: str, value: object, problem: str
) -> None:
    problems = refusal(zk.snapshot(changed(path, value)))
    assert any(problem in each for each in problems), problems


def test_everything_wrong_is_said_at_once() -> None:
    znodes = {**changed(STATE, b"{"), "/brokers/ids/x": Znode(b"{}"), "/controller": Znode(b"1")}
    assert len(refusal(zk.snapshot(znodes))) == 3


def test_a_cluster_nobody_names_asks_for_a_name() -> None:
    znodes = zk.kafka_znodes(doc())
    del znodes["/cluster/id"]
    assert "give --cluster NAME" in refusal(zk.snapshot(znodes))[0]
    assert read(znodes, Asked(Naming(cluster="mine"))).cluster == "mine"


def test_a_tree_without_kafka_is_refused() -> None:
    (problem,) = refusal(zk.snapshot({"/other": Znode()}))
    assert problem.startswith("there is no Kafka cluster in this tree")


# --- Snapshot files ----------------------------------------------------------------------------


def test_a_snapshot_is_exact_if_its_digest_says_so() -> None:
    znodes = zk.kafka_znodes(doc())
    proven = zk.snapshot(znodes, digest=(0x66, zk.digest_of(znodes)))
    disproven = zk.snapshot(znodes, digest=(0x66, zk.digest_of(znodes) + 1))
    for data, complete in ((proven, True), (disproven, False)):
        (found,) = parse(data)
        assert found.content is not None
        assert found.content.snapshot[8] is complete


def test_a_change_after_the_name_of_a_snapshot_shows_that_it_is_fuzzy() -> None:
    znodes = zk.kafka_znodes(doc())
    later = {**znodes, "/other": Znode(mzxid=0x65)}
    assert read(znodes).snapshot[8] is True
    assert read(later).snapshot[8] is False


GOOD = zk.snapshot(zk.kafka_znodes(doc()))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "byte 0: this is no ZooKeeper snapshot"),
        (b"\0\0\0\2" + GOOD[4:], "what ZooKeeper wrote before it had a directory version-2"),
        (zk.snapshot({}, version=3), "byte 4: version 3 of ZooKeeper's snapshots is not known"),
        (GOOD[:400], "the snapshot is truncated: it ends inside a znode"),
        (GOOD[:-13], "the snapshot is truncated: its checksum is missing"),
        (GOOD[:-1], "the snapshot is truncated: its checksum is missing"),
        (GOOD[:-1] + b"x", "the checksum is not followed by the end of the tree"),
        (GOOD[:60] + b"\x01" + GOOD[61:], "the checksum says 0x"),
        (GOOD + b"\0" * 5, "only 5 do"),
        (zk.gz(GOOD)[:-9], "the gzip data is truncated"),
        (zk.gz(GOOD)[:-5] + b"12345", "the gzip data is corrupt"),
        (zk.gz(GOOD) + b"more", "there is more after the end of the gzip data"),
        (zk.snappy(GOOD)[:300], "bytes should follow and only"),
        (zk.snappy(GOOD)[:40] + b"\0" * 9 + zk.snappy(GOOD)[49:], "byte"),
        (b"\x82SNAPPY\0\0\0\0\2\0\0\0\2", "version 2/2 of Snappy's stream is not known"),
    ],
)
def test_a_damaged_snapshot_is_refused(data: bytes, problem: str) -> None:
    (found,) = refusal(data)
    assert problem in found


@pytest.mark.parametrize("pack", [zk.gz, zk.snappy])
def test_a_compression_bomb_is_bounded(pack: Any) -> None:  # noqa: ANN401 - two kinds of function
    bomb = pack(bytes(20_000_000))
    assert len(bomb) < 1_000_000
    wanted = Asked(max_uncompressed_bytes=1_000_000)
    (problem,) = refusal(bomb, NAME + ".gz", wanted)
    assert problem == "the file is larger than 1,000,000 bytes when uncompressed"


def test_a_snappy_block_that_promises_too_much_is_not_unpacked() -> None:
    block = b"\xff\xff\xff\xff\x0f" + b"x"
    data = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block
    (problem,) = refusal(data, NAME, Asked(max_uncompressed_bytes=10**9))
    assert problem == "the file is larger than 1,000,000,000 bytes when uncompressed"


# --- Dumps without what ZooKeeper counts -------------------------------------------------------


@pytest.mark.parametrize("write", [zk.zk_shell, zk.burry])
def test_a_dump_without_stat_is_incomplete(write: Any) -> None:  # noqa: ANN401
    data = write(zk.kafka_znodes(doc(), chroot="/k"))
    assert forms.recognise(data[: forms.HEAD_BYTES], "x") == forms.DUMP
    (found,) = parse(data, "x")
    assert found.content is not None
    content = found.content
    assert content.snapshot[8] is False
    assert content.brokers[0][:6] == (1, True, None, None, None, "a")
    assert content.partitions[0][6:12] == (True, 2, 3, [1, 2], None, 4)
    assert content.snapshot_id.startswith("dump-")


def test_burry_says_when() -> None:
    (found,) = parse(zk.burry(zk.kafka_znodes(doc()), date="2026-01-01T00:00:00Z"), "x.zip")
    assert found.content is not None
    assert found.content.snapshot[0] == 1_767_225_600_000_000


def test_a_part_of_a_tree_is_incomplete() -> None:
    znodes = zk.kafka_znodes(doc())
    part = {path: znode for path, znode in znodes.items() if path.startswith("/brokers/topics")}
    (found,) = parse(zk.kazoo_lines(part), "x", Asked(Naming(cluster="c")))
    assert found.content is not None
    assert found.content.snapshot[6:9] == (None, None, False)
    (whole,) = parse(zk.kazoo_lines(znodes), "x")
    assert whole.content is not None
    assert whole.content.snapshot[8] is True


def test_a_dump_whose_numbers_of_children_do_not_agree_is_incomplete() -> None:
    lines = [json.loads(line) for line in zk.kazoo_lines(zk.kafka_znodes(doc())).splitlines()]
    for children, complete in ((2, True), (3, False)):
        for line in lines:
            if line["path"] == "/brokers/ids":
                line["stat"]["numChildren"] = children
        (found,) = parse("\n".join(map(json.dumps, lines)).encode(), "x")
        assert found.content is not None
        assert found.content.snapshot[8] is complete


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"path": "/a"', "line 1: column"),
        ('{"path": "/a", "data_b64": "?"}', "the data is no Base64"),
        ('{"path": "/a", "data_b64": 3}', "the data is no Base64"),
        ('{"path": "/a", "stat": {"czxid": 1}}', "the stat has no number mzxid, ctime"),
        ('{"path": "/a", "stat": 7}', "the stat is no object: 7"),
        ('{"path": "a"}', '"a" does not begin with /'),
        ('{"path": "/a"}\n{"path": "/a"}', 'line 2: "/a" is there twice'),
        ('{"path": "/a"}\n7', 'line 2: a znode is an object with "path"'),
    ],
)
def test_a_broken_dump_is_refused(line: str, problem: str) -> None:
    (found,) = forms.parse(line.encode(), "x", forms.DUMP, WANTED)
    assert any(problem in each for each in found.problems), found.problems


@pytest.mark.parametrize("cut", [60, 600, -30])
def test_a_broken_archive_is_refused(cut: int) -> None:
    (found,) = forms.parse(zk.burry(zk.kafka_znodes(doc()))[:cut], "x", forms.DUMP, WANTED)
    assert "the zip archive cannot be read" in found.problems[0]


# --- Recognising -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "name", "form"),
    [
        (b"ZKLG\0\0\0\2", "log.1", "zookeeper"),
        (b"ZKSN\0\0\0\2", "anything", "zk-snapshot"),
        (zk.gz(GOOD)[:100], "x", "zk-snapshot"),
        (zk.snappy(GOOD)[:100], "x", "zk-snapshot"),
        (b"ZNode Details (count=5):\n----\n", "x", "zk-dump"),
        (zk.gz(b"ZNode Details (count=5):\n----\n"), "x", "zk-dump"),
        (b'{"path": "/", "data_b64": ""', "x", "zk-dump"),
        (b'[{"path": "/a", "data_b64": ""', "x", "zk-dump"),
        (b'{"cluster": "c", "snapshot_id": "s"', "x.json", None),
        (b'{"partitions": [{"topic": "t", "partition": 0}]}', "x.json", None),
        (b'{"scenario": "s", "events": [{"path": "/x"}]}', "x.json", None),
        (b"PK\x03\x04 a zip of something else", "x.zip", None),
        (b"\x1f\x8bbroken", "x.gz", None),
        (b"", "empty", None),
        (b"1", "acceptedEpoch", None),
    ],
)
def test_files_are_recognised_by_what_they_begin_with(
    head: bytes, name: str, form: str | None
) -> None:
    assert forms.recognise(head, name) == form


# --- Transaction logs --------------------------------------------------------------------------


def records(count: int = 5, first: int = 0x65) -> list[bytes]:
    return [
        zk.record(first + n, zk.SET_DATA, zk.set_data(STATE, _state(n), n + 10), time=1000 + n)
        for n in range(count)
    ]


def _state(leader_epoch: int) -> bytes:
    return json.dumps(
        {"leader": 1, "leader_epoch": leader_epoch, "isr": [1], "controller_epoch": 4}
    ).encode()


def load(files: Mapping[str, bytes], wanted: Asked = WANTED) -> list[Parsed]:
    plan = history.plan(files, wanted)
    assert plan.problem is None
    return list(history.read(((name, files[name]) for name in plan.names), wanted, plan.settled_by))


def replayed(log: bytes, wanted: Asked = WANTED, base: bytes = GOOD) -> Parsed:
    (found,) = load({NAME: base, "log.65": log}, wanted)
    return found


def test_a_log_goes_on_from_a_snapshot() -> None:
    found = replayed(zk.log(records()))
    assert found.content is not None
    assert found.content.partitions[0][6:12] == (True, 1, 4, [1], 14, 4)
    assert found.content.snapshot[0] == 1_004_000
    assert found.position == f"zxid 0x69 ({NAME}, log.65)"


def test_a_torn_last_record_is_a_normal_end() -> None:
    whole = zk.log(records(4), zeros=0)
    torn = records()[4]
    for size in (1, 8, 12, 13, len(torn) - 1):
        for zeros in (0, 4096):
            found = replayed(whole + torn[:size] + bytes(zeros))
            assert found.snapshot_id == "zxid-0x68"
    flipped = torn[:50] + b"\xff" + torn[51:]
    assert replayed(whole + flipped + bytes(99)).snapshot_id == "zxid-0x68"


@pytest.mark.parametrize("at", [0, 7, 8, 11, 12, 60, -1])
def test_a_bad_record_in_the_middle_is_refused(at: int) -> None:
    parts = records()
    damaged = bytearray(parts[2])
    damaged[at] ^= 0x40
    found = replayed(zk.log([*parts[:2], bytes(damaged), *parts[3:]]))
    assert found.content is None
    assert "the record is not what its checksum says, and good records follow" in found.problems[0]
    assert found.problems[0].startswith("log.65: byte ")


def test_a_length_of_zero_in_the_middle_does_not_end_a_log() -> None:
    parts = records()
    found = replayed(zk.log([*parts[:2], bytes(12) + parts[2][12:], *parts[3:]]))
    assert "good records follow" in found.problems[0]


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (b"ZKLG", "the log is truncated: it ends inside its header"),
        (b"nonsense" * 10, "this is no ZooKeeper transaction log"),
        (zk.log(records(), version=3), "version 3 of ZooKeeper's logs is not known"),
        (zk.log([zk.record(0x65, 99, b"")]), "transactions of type 99 are not known"),
        (zk.log([zk.record(0x65, 2, zk.string("a"))]), "a path does not begin with /"),
        (zk.log([zk.record(0x65, 2, zk.string("/a") + b"123")]), "has 3 bytes too many"),
        (zk.log([zk.record(0x65, 5, zk.string("/a"))]), "bytes should follow and only 0 do"),
        (zk.log([zk.record(0x65, 14, b"\x7f\xff\xff\xff")]), "items cannot follow in 0 bytes"),
        (zk.log([zk.record(0x65, 2, b"\xff\xff\x00\x00")]), "is no length"),
    ],
)
def test_a_damaged_log_is_refused(log: bytes, problem: str) -> None:
    found = replayed(log)
    assert found.content is None
    assert problem in found.problems[0]


def test_a_hole_between_transactions_is_refused() -> None:
    parts = records()
    found = replayed(zk.log([*parts[:2], *parts[3:]]))
    assert "transaction 0x68 follows 0x66; what was between them is missing" in found.problems[0]
    (missing,) = load({NAME: GOOD, "log.67": zk.log(parts[2:])})
    assert "transaction 0x67 follows 0x64" in missing.problems[0]


def test_a_transaction_twice_in_a_log_is_refused() -> None:
    parts = records()
    found = replayed(zk.log([*parts[:3], *parts[1:]]))
    assert "transaction 0x66 follows 0x67" in found.problems[0]


def test_what_is_wrong_after_an_instant_does_not_matter_to_it() -> None:
    parts = records()
    log = zk.log([*parts[:2], parts[2], parts[4], parts[3]])
    bounded = zk.snapshot(zk.kafka_znodes(doc()), last_zxid=0x64)
    for base, complete in ((bounded, True), (GOOD, False)):
        found = replayed(log, Asked(zxid=0x66), base=base)
        assert found.snapshot_id == "zxid-0x66"
        assert found.content is not None
        assert found.content.snapshot[8] is complete


def test_a_new_leader_begins_a_new_epoch() -> None:
    epoch = 3 << 32
    log = zk.log([*records(2), *records(2, first=epoch + 1)])
    assert replayed(log).snapshot_id == f"zxid-0x{epoch + 2:x}"


def test_a_log_without_a_snapshot_needs_to_begin_at_the_beginning() -> None:
    (found,) = load({"log.65": zk.log(records())})
    assert "there is no good snapshot for the log to go on from" in found.problems[0]


def test_a_log_of_another_ensemble_is_refused() -> None:
    other = zk.record(0x65, zk.CREATE, zk.create("/brokers/topics/t", b"{}"))
    for base in (GOOD, zk.snapshot(zk.kafka_znodes(doc()), last_zxid=0x64)):
        found = replayed(zk.log([other]), base=base)
        assert "the logs do not belong to the snapshot" in found.problems[0]


def test_a_tree_that_does_not_have_the_digest_of_the_log_is_not_trusted() -> None:
    znodes = zk.kafka_znodes(doc())
    base = zk.snapshot(znodes, digest=(0x64, zk.digest_of(znodes)))
    error = struct.pack(">i", -110)
    right = zk.log([zk.record(0x65, zk.ERROR, error, digest=zk.digest_of(znodes))])
    wrong = zk.log([zk.record(0x65, zk.ERROR, error, digest=zk.digest_of(znodes) - 1)])
    for log, complete in ((right, True), (wrong, False)):
        found = replayed(log, base=base)
        assert found.content is not None
        assert found.content.snapshot[8] is complete


def test_a_damaged_snapshot_is_said_and_an_older_one_taken() -> None:
    newer = zk.snapshot(zk.kafka_znodes(doc()))[:-3]
    files = {NAME: GOOD, "snapshot.66": newer, "log.65": zk.log(records())}
    bad, found = load(files)
    assert bad.problems[0].startswith("snapshot.66: ")
    assert found.snapshot_id == "zxid-0x69"
    assert found.content is not None


def test_an_instant_that_is_not_there_is_refused() -> None:
    found = replayed(zk.log(records()), Asked(zxid=0x99))
    assert found.problems == ("transaction 0x99 is not there: the newest is 0x69",)
    assert history.plan({NAME: b""}, Asked(zxid=0x5)).problem is not None
    assert history.plan({"log.65": b""}, Asked(time=5), {"log.65": 6}).problem is not None


def test_a_deletion_seen_too_early_makes_an_instant_inexact() -> None:
    """The snapshot was still being written when broker 2 died, after the instant asked for."""
    znodes = zk.kafka_znodes(doc())
    died = zk.record(0x67, zk.DELETE, zk.string("/brokers/ids/2"))
    log = zk.log([*records(2), died])
    seen = replayed(log, Asked(zxid=0x66), base=zk.snapshot(znodes))
    del znodes["/brokers/ids/2"]
    unseen = replayed(log, Asked(zxid=0x66), base=zk.snapshot(znodes))
    for found, complete in ((seen, True), (unseen, False)):
        assert found.content is not None
        assert found.content.snapshot[8] is complete


def test_what_transactions_do() -> None:
    other = 0x2000_0000_0000_0009
    log = zk.log(
        [
            zk.record(
                0x65,
                zk.MULTI,
                zk.multi(
                    (zk.CHECK, zk.string("/controller_epoch") + struct.pack(">i", 3)),
                    (zk.SET_DATA, zk.set_data("/controller_epoch", b"5", 4)),
                    (zk.CREATE, zk.create("/admin/delete_topics/t", None)),
                ),
            ),
            zk.record(  # a multi of which one part failed does nothing
                0x66,
                zk.MULTI,
                zk.multi(
                    (zk.SET_DATA, zk.set_data("/controller_epoch", b"9", 9)),
                    (zk.ERROR, struct.pack(">i", -103)),
                ),
            ),
            zk.record(
                0x67,
                zk.CREATE,
                zk.create("/brokers/ids/5", b'{"version":5}', ephemeral=True),
                session=other,
            ),
            zk.record(  # as ZooKeeper before 3.4 wrote it, without the parent's counter
                0x68,
                zk.CREATE,
                zk.create("/brokers/ids/6", b'{"version":5}', ephemeral=True)[:-4],
                session=other,
            ),
            zk.record(0x69, zk.CREATE, zk.create("/brokers/ids/7", b'{"version":5}')),
            zk.record(0x6A, 19, zk.create("/box", b"")[:-5] + struct.pack(">i", 1)),
            zk.record(0x6B, 21, zk.create("/short", b"")[:-5] + struct.pack(">iq", 1, 9000)),
            zk.record(0x6C, 7, zk.string("/box") + zk.ROOT_ACL + struct.pack(">i", 1)),
            zk.record(0x6D, -10, struct.pack(">i", 4000), session=0x77),
        ]
    )
    found = replayed(log)
    assert found.content is not None
    assert found.content.snapshot[7] == 5
    assert found.content.topics == [("t", None, True)]
    assert [(row[0], row[4]) for row in found.content.brokers] == [
        (1, 77), (2, 78), (5, 0x67), (6, 0x68), (7, 0x69),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        (b"", None),  # until 3.5
        (b"", 77),  # 3.6 and newer, told not to list the znodes
        (struct.pack(">i", 2) + zk.string("/brokers/ids/1") + zk.string("/brokers/ids/2"), None),
        (struct.pack(">i", 2) + zk.string("/brokers/ids/2") + zk.string("/brokers/ids/1"), 77),
    ],
)
def test_a_session_that_closes_takes_its_brokers_along(body: bytes, digest: int | None) -> None:
    found = replayed(zk.log([zk.record(0x65, zk.CLOSE_SESSION, body, digest=digest)]))
    assert found.content is not None
    assert found.content.brokers == []


def test_a_transaction_twice_in_a_fuzzy_snapshot_is_harmless() -> None:
    znodes = {
        **zk.kafka_znodes(doc()),
        STATE: Znode(_state(1), version=11, mzxid=0x66),
        "/brokers/topics/u": Znode(b'{"partitions": {"0": [1]}}', czxid=0x67, mzxid=0x67),
    }
    log = zk.log(
        [
            *records(2),
            zk.record(0x67, zk.CREATE, zk.create("/brokers/topics/u", b"{}")),
            zk.record(0x68, zk.DELETE, zk.string("/brokers/topics/not-there")),
        ]
    )
    found = replayed(log, base=zk.snapshot(znodes))
    assert found.content is not None
    assert found.content.partitions[0][6:12] == (True, 1, 1, [1], 11, 4)
    assert [row[0] for row in found.content.topics] == ["t", "u"]


def test_every_change_begins_with_the_snapshot() -> None:
    idle = zk.record(0x65, zk.ERROR, struct.pack(">i", -110))
    offset = zk.record(0x66, zk.CREATE, zk.create("/consumers", b""))
    files = {NAME: GOOD, "log.65": zk.log([idle, offset, *records(3, first=0x67)])}
    found = load(files, Asked(Naming(release="3.9"), every_change=True))
    assert [each.snapshot_id for each in found] == [
        "zxid-0x64", "zxid-0x67", "zxid-0x68", "zxid-0x69",
    ]  # fmt: skip


def test_a_directory_that_nothing_happened_in_is_one_snapshot() -> None:
    (found,) = load({NAME: GOOD}, Asked(every_change=True))
    assert found.snapshot_id == "zxid-0x64"
    assert found.content is not None


# --- Choosing files ----------------------------------------------------------------------------


def test_only_the_files_that_are_needed_are_read() -> None:
    names = [
        "snapshot.0",
        "log.1",
        *(f"{kind}.{n:x}" for n in (32, 64, 96, 128, 160) for kind in ("snapshot", "log")),
    ]
    assert history.plan(names, Asked()).names == (
        "snapshot.a0", "snapshot.80", "snapshot.60", "snapshot.40",
        "log.40", "log.60", "log.80", "log.a0",
    )  # fmt: skip
    assert history.plan(names, Asked(zxid=0x50)).names == (
        "snapshot.40", "snapshot.20", "snapshot.0", "log.1", "log.20", "log.40", "log.60",
    )  # fmt: skip
    assert history.plan(names, Asked(every_change=True)).names[0] == "log.1"
    starts = {name: int(name[4:], 16) * 1000 for name in names if name.startswith("log.")}
    at = history.plan(names, Asked(time=0x45 * 1000), starts)
    assert at.names[-1] == "log.40"
    assert at.names[0] == "snapshot.20"
    assert at.settled_by == 0x3F


@pytest.mark.parametrize(
    ("at", "zxid", "time"),
    [
        (None, None, None),
        ("zxid:0x1F", 31, None),
        ("zxid:1f", 31, None),
        ("2026-01-01T00:00:00.250Z", None, 1_767_225_600_250),
        ("2026-01-01", None, 1_767_225_600_000),
    ],
)
def test_instants_as_they_are_asked_for(at: str | None, zxid: int | None, time: int | None) -> None:
    wanted = history.asked(at=at, cluster="c")
    assert (wanted.zxid, wanted.time, wanted.naming.cluster) == (zxid, time, "c")


@pytest.mark.parametrize("at", ["offset:812", "zxid:", "zxid:0xg", "yesterday", ""])
def test_other_instants_are_refused(at: str) -> None:
    with pytest.raises(UsageError, match="expected zxid:0x1f or a time"):
        history.asked(at=at)


def test_one_instant_and_all_of_them_contradict() -> None:
    with pytest.raises(UsageError, match="give one of both"):
        history.asked(at="zxid:1", every_change=True)


def test_a_znode_may_matter() -> None:
    assert kafka.may_change_kafka(b"/k/brokers/topics/t/partitions/0/state")
    assert kafka.may_change_kafka(b"/brokers/ids")
    assert not kafka.may_change_kafka(b"/consumers/g/offsets/t/0")
    assert not kafka.may_change_kafka(b"/config/changes/config_change_1")


def test_the_checksum_of_a_record_is_of_the_record_alone() -> None:
    (found,) = txnlog.read(zk.log(records(1)))
    assert found.position == 16
    assert zlib.adler32(records(1)[0][12:-1]) == int.from_bytes(records(1)[0][:8], "big")
