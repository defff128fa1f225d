"""The texts of Kafka's tools, recorded at one instant each, against the state of that instant."""

from __future__ import annotations

import gzip
import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

from understudy.errors import BadInputError
from understudy.sources import (
    cluster_text,
    configs_text,
    describe_text,
    document,
    dump_log_text,
    kcat,
    log_dirs_json,
    reassignment_json,
    state_change_log,
    text_forms,
)
from understudy.sources import content as C
from understudy.sources.content import Content, Parsed, Row
from understudy.sources.kraft_directory import Asked

DATA = Path(__file__).parents[1] / "data" / "texts"
INSTANTS = sorted(path.name.removesuffix(".tar.gz") for path in DATA.glob("*.tar.gz"))
WHOLE = ("topics-describe.txt", "topics-describe-zookeeper.txt", "kcat.txt", "kcat.json")

Texts = dict[str, bytes]


def texts_of(instant: str) -> Texts:
    with tarfile.open(DATA / f"{instant}.tar.gz") as archive:
        return {
            member.name: found.read()
            for member in archive
            if (found := archive.extractfile(member))
        }


def truth_of(texts: Texts, name: str = "truth.json") -> Content:
    (parsed,) = document.parse(texts[name])
    assert parsed.content is not None
    return parsed.content


def load(texts: Texts, form: str | None = None) -> dict[str, Parsed]:
    files = sorted(texts.items(), key=lambda file: (text_forms.rank(file[1]), file[0]))
    return dict(text_forms.snapshots(files, Asked("c"), form))


def good(parsed: Parsed) -> Content:
    assert parsed.problems == ()
    assert parsed.content is not None
    return parsed.content


def named(row: Row, columns: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))


@pytest.fixture(scope="module", params=INSTANTS)
def instant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def texts(instant: str) -> Texts:
    return {name: data for name, data in texts_of(instant).items() if "truth-" not in name}


@pytest.fixture(scope="module")
def loaded(texts: Texts) -> dict[str, Parsed]:
    known = {name: data for name, data in texts.items() if name != "truth.json"}
    return load(known)


def test_every_text_is_recognised(texts: Texts) -> None:
    beside = ("configs-", "log-dirs", "broker-api", "quorum-status", "features", "endpoints")
    for name, data in texts.items():
        expected: str | None = None
        if name.startswith("topics-"):
            expected = "describe"
        elif name.startswith("kcat"):
            expected = "kcat"
        elif name.startswith("dump-log"):
            expected = "dump-log"
        elif name == "reassign-generate.txt":
            expected = "reassignment"
        elif name.startswith(beside) or name == "reassign-list.txt":
            expected = "beside"
        assert text_forms.recognise(data) == expected, name
        assert text_forms.recognise(gzip.compress(data)) == expected, name


def test_partitions_are_what_the_cluster_had(
    instant: str, texts: Texts, loaded: dict[str, Parsed]
) -> None:
    truth = truth_of(texts)
    alive = {row[0] for row in truth.brokers if row[1]}
    was = {row[:2]: named(row, C.PARTITION_COLUMNS) for row in truth.partitions}
    read = [name for name in loaded if name.startswith(("topics-describe", "kcat"))]
    assert len(read) >= 4
    for name in read:
        for row in good(loaded[name]).partitions:
            found, expected = named(row, C.PARTITION_COLUMNS), was[row[:2]]
            for column, value in found.items():
                if value is None or (name.startswith("kcat") and instant.startswith("zk-1.0")):
                    continue  # 1.0's brokers answer from caches that lag behind
                if column == "leader" and value == -1 and expected[column] not in alive:
                    continue  # a broker answers that there is none when the leader is dead
                assert value == expected[column], (name, row[:2], column)


def test_no_partition_of_a_whole_text_is_lost(texts: Texts, loaded: dict[str, Parsed]) -> None:
    truth = truth_of(texts)
    queued = {topic for topic, _, is_queued in truth.topics if is_queued}
    for name in set(WHOLE) & set(loaded):
        found = {row[:2] for row in good(loaded[name]).partitions}
        lost = {row[:2]: row for row in truth.partitions if row[:2] not in found}
        # Brokers list neither what never had a leader nor what is being deleted.
        assert all(row[0] in queued or not row[6] for row in lost.values())
        complete = dict(zip(C.SNAPSHOT_COLUMNS, good(loaded[name]).snapshot, strict=True))
        assert not (lost and complete["complete"])


@pytest.mark.parametrize(
    "instant", [name for name in INSTANTS if not name.startswith("zk-1.0")], indirect=True
)
def test_brokers_and_settings_from_the_texts_beside(
    instant: str, texts: Texts, loaded: dict[str, Parsed]
) -> None:
    truth = truth_of(texts)
    for name in set(WHOLE) & set(loaded):
        found = good(loaded[name])
        assert {row[0] for row in found.brokers if row[1]} == {
            row[0] for row in truth.brokers if row[1]
        }
        racks = {row[0]: row[5] for row in truth.brokers}
        assert all(row[5] is None or row[5] == racks[row[0]] for row in found.brokers)
        topics = {row[0] for row in found.topics}
        live = {str(row[0]) for row in truth.brokers if row[1]}
        expected = [
            row
            for row in truth.configs
            if (row[0] != "topic" or row[1] in topics) and (row[0] != "broker" or row[1] in live)
        ]
        assert [row for row in expected if row not in found.configs] == []
        snapshot = named(found.snapshot, C.SNAPSHOT_COLUMNS)
        if instant.startswith("kraft"):
            was = named(truth.snapshot, C.SNAPSHOT_COLUMNS)
            for column in ("mode", "metadata_version", "elr_enabled", "controller_id"):
                assert snapshot[column] == was[column]


def test_filtered_and_partial_texts_are_never_complete(loaded: dict[str, Parsed]) -> None:
    for name, parsed in loaded.items():
        if name.startswith("topics-describe-") and name not in WHOLE:
            assert good(parsed).snapshot[8] is False
    assert "no partition line" in loaded["topics-with-overrides.txt"].problems[0]


@pytest.mark.parametrize(
    "instant", [name for name in INSTANTS if "down" not in name], indirect=True
)
@pytest.mark.usefixtures("instant")
def test_an_assignment_is_only_that(texts: Texts, loaded: dict[str, Parsed]) -> None:
    found = good(loaded["reassign-generate.txt"])
    was = {row[:2]: row[2] for row in truth_of(texts).partitions}
    assert found.partitions
    for row in found.partitions:
        assert row[2] == was[row[:2]]
        assert row[6:11] == (None, None, None, None, None)
    assert found.snapshot[8] is False


@pytest.mark.parametrize("instant", [name for name in INSTANTS if name.startswith("kraft")])
def test_the_dump_of_a_checkpoint_is_the_checkpoint(instant: str) -> None:
    texts = texts_of(instant)
    (name,) = (name for name in texts if name.startswith("truth-"))
    truth = truth_of(texts, name)
    (parsed,) = load({"d": texts["dump-log-checkpoint.txt"]}).values()
    (bare,) = load({"d": texts["dump-log-checkpoint-skip-metadata.txt"]}).values()
    for found in (good(parsed), good(bare)):
        assert found.partitions == truth.partitions
        assert found.topics == truth.topics
        assert [(*row[:6], row[7]) for row in found.brokers] == [
            (*row[:6], row[7]) for row in truth.brokers
        ]
        assert found.snapshot_id == f"offset-{int(name[6:26]) - 1}"
    assert good(parsed).snapshot[0] == truth.snapshot[0]


def test_the_dumps_of_a_checkpoint_and_of_the_log_after_it() -> None:
    texts = texts_of("kraft-4.3-log-dir-failed")
    whole = texts["dump-log-checkpoint.txt"] + texts["dump-log.txt"]
    (parsed,) = load({"d": whole}).values()
    truth = truth_of(texts)
    assert good(parsed).partitions == truth.partitions
    assert good(parsed).configs == truth.configs
    assert any(row[5] for row in truth.partitions)  # a directory had failed
    (alone,) = load({"d": texts["dump-log.txt"]}).values()
    assert "there is no checkpoint to begin with" in alone.problems[0]


# --- Wordings no recorded cluster has ------------------------------------------------------------


def described(text: str) -> Content:
    (parsed,) = load({"t": text.encode(), "brokers": b"1 a\n2\n3 c\n"}).values()
    return good(parsed)


def test_describe_of_old_releases_and_pasted_text() -> None:
    old = (
        "Topic:my-topic\tPartitionCount:2\tReplicationFactor:2\tConfigs:"
        "cleanup.policy=compact,delete,retention.ms=5\n"
        "\tTopic: my-topic\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1\n"
        "\tTopic: my-topic\tPartition: 1\tLeader: -1\tReplicas: 2,1\tIsr: 2\n"
    )
    found = described(old)
    assert [row[:3] + row[7:10] for row in found.partitions] == [
        ("my-topic", 0, [1, 2], 1, None, [2, 1]),
        ("my-topic", 1, [2, 1], -1, None, [2]),
    ]
    assert found.configs == [
        ("topic", "my-topic", "cleanup.policy", "compact,delete"),
        ("topic", "my-topic", "retention.ms", "5"),
    ]
    assert [row[:2] + row[5:6] for row in found.brokers] == [
        (1, True, "a"),
        (2, True, None),
        (3, True, "c"),
    ]
    assert found.snapshot[1] is None
    assert found.snapshot[8] is True
    pasted = described("$ kafka-topics.sh --describe\r\n" + old.expandtabs(4).replace("\n", "\r\n"))
    assert pasted.partitions == found.partitions
    assert pasted.configs == found.configs


def test_describe_says_what_is_being_moved_deleted_or_eligible() -> None:
    found = described(
        "Topic: t\tTopicId: abc\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 3,1\tIsr: \tAdding Replicas: 3"
        "\tRemoving Replicas: \tElr: 1\tLastKnownElr: -1\n"
        "\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    )
    moved, still = found.partitions
    assert (moved[3], moved[4], moved[6], moved[9]) == ([3], [], True, [])
    assert (moved[13], moved[14]) == ([1], [-1])
    assert (still[3], still[4], still[13]) == ([], [], [])
    assert found.snapshot[1] == "kraft"
    deleted = described(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \tMarkedForDeletion: true\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tMarkedForDeletion: true\n"
    )
    assert deleted.topics == [("t", None, True)]
    assert deleted.snapshot[1] == "zk"
    assert deleted.partitions[0][3] is None  # whether it is being moved was not said


def test_without_a_list_brokers_are_inferred_and_it_is_said() -> None:
    text = (
        "Topic: t\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1,2\n"
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 4\tIsr: 4\n"
    )
    (parsed,) = load({"t": text.encode()}).values()
    assert [row[:2] for row in good(parsed).brokers] == [(1, True), (2, True), (3, None), (4, None)]
    assert parsed.position == "line 1; brokers are inferred from leaders and ISRs"
    assert good(parsed).snapshot[8] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                "Topic: t\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
                "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
            ),
            "line 1: topic t has 2 partitions, 1 are listed",
        ),
        (
            "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n" * 2,
            "line 2: partition t-0 is described twice",
        ),
        (
            "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,1\tIsr: 1\n",
            "line 1: a replica of t-0 stands there twice",
        ),
        ("\tTopic: t\tPartition: 0\tLeader: 1\tRepl", "line 1: no line of kafka-topics"),
        (
            (
                "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: "
                "min.insync.replicas=no\n"
                "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
            ),
            "min.insync.replicas of topic t: Kafka reads an integer",
        ),
        ('{"originating_broker":{"id":1}', "no whole JSON object"),
        (
            "Metadata for all topics (from broker 1: h:9092/1):\n 2 brokers:\n  broker 1 at h:9\n",
            "the text is cut short",
        ),
        (
            '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}',
            "partitions[0].replicas[1]: broker 1 stands here twice",
        ),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1]', "the text is no whole"),
        (
            "Dumping /x/00000000000000000000.log\nLog starting offset: 0\nbaseOffset: 0 last",
            "line 3: the batch line is cut short",
        ),
        ("Dumping 00000000000000000000.log\nLog starting offset: 0\n", "there is no record"),
        ("[2024-02-29 03:37:35,281] INFO nothing (state.change.logger)\n", "holds no decision"),
        ("hello", "no text of a form known"),
        ("", "the file is empty"),
    ],
)
def test_a_text_that_is_refused(text: str, said: str) -> None:
    (parsed,) = load({"t": text.encode()}).values()
    assert parsed.content is None
    assert said in parsed.problems[0]


def test_another_form_than_the_one_asked_for() -> None:
    text = b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
    (parsed,) = load({"t": text}, "describe").values()
    assert parsed.problems == ("no text of the form describe is in this directory",)
    (parsed,) = load({"t": b"x"}, "kcat").values()
    assert parsed.problems == ("this is no text of the form kcat",)
    assert good(load({"t": text}, "reassignment")["t"]).snapshot[2] == "reassignment"


def test_text_that_does_not_name_its_cluster() -> None:
    text = b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
    ((_, parsed),) = text_forms.snapshots([("t", text)], Asked())
    assert parsed.problems == ("this form does not name its cluster: say --cluster NAME",)


def test_an_instant_is_asked_of_a_text_that_has_none() -> None:
    text = b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
    ((_, parsed),) = text_forms.snapshots([("t", text)], Asked("c", offset=3))
    assert parsed.problems[0].startswith("--at: a text of the form reassignment")


def test_a_compressed_bomb_is_refused() -> None:
    bomb = gzip.compress(b"\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n" * 100_000)
    ((_, parsed),) = text_forms.snapshots([("t", bomb)], Asked("c", max_uncompressed_bytes=100_000))
    assert parsed.problems == ("the file is larger than 100,000 bytes when uncompressed",)
    for broken, said in ((bomb[:-9], "truncated"), (bomb[:-6] + b"123456", "corrupt")):
        ((_, parsed),) = text_forms.snapshots([("t", broken)], Asked("c"))
        assert said in parsed.problems[0]


def test_settings_with_their_sources() -> None:
    beside = configs_text.read(
        [
            "All configs for broker 1 are:",
            (
                "  min.insync.replicas=3 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
                "min.insync.replicas=3, STATIC_BROKER_CONFIG:min.insync.replicas=2, DEFAULT_CONFIG:"
                "min.insync.replicas=1}"
            ),
            "  ssl.key.password=null sensitive=true synonyms={}",
            "  log.retention.hours=168 sensitive=false synonyms={DEFAULT_CONFIG:x=168}",
            "Default configs for brokers in the cluster are:",
            "  a.b=1,c=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:a.b=1,c=2}",
            "Configs for topic 'x.y' are cleanup.policy=compact,delete,retention.ms=1",
        ]
    )
    assert beside.configs == [
        ("broker", "1", "min.insync.replicas", "3"),
        ("static", None, "min.insync.replicas", "2"),
        ("cluster", None, "a.b", "1,c=2"),
        ("topic", "x.y", "cleanup.policy", "compact,delete"),
        ("topic", "x.y", "retention.ms", "1"),
    ]
    with pytest.raises(BadInputError, match="line 2: no line of kafka-configs"):
        configs_text.read(["Dynamic configs for topic t are:", "  min.insync.repl"])


def test_lists_of_brokers() -> None:
    answered = cluster_text.read_api_versions(
        ["h:1 (id: 1 rack: null) -> (", "h:2 (id: 2 rack: b) -> ERROR: gone", "\tx", ")"]
    )
    assert list(answered.brokers or {}) == [1]
    fenced = cluster_text.read_endpoints(
        ["ID HOST PORT RACK STATE ENDPOINT_TYPE", "1 h 1 null fenced broker"]
    )
    assert fenced.brokers is not None
    assert (fenced.brokers[1].fenced, fenced.brokers[1].rack) == (True, None)
    with pytest.raises(BadInputError, match="line 2"):
        cluster_text.read_list(["1 a", "two"])


# --- The state-change log ----------------------------------------------------------------------

_KINDS = {
    "partition transition": ("partition", "ok"),
    "partition transition failed": ("partition", "failed"),
    "replica transition": ("replica", "ok"),
    "replica transition failed": ("replica", "failed"),
    "record after removal": ("removal", "ok"),
    "LEADER_AND_ISR partition": ("leader_and_isr", "ok"),
}


@pytest.mark.parametrize("run", ["zk-1.0", "zk-2.8", "zk-3.9"])
def test_every_recorded_decision(run: str) -> None:
    with gzip.open(DATA / f"{run}-state-change.log.gz", "rt", encoding="utf-8") as log:
        found: dict[Any, list[state_change_log.Recorded]] = {}
        for row in state_change_log.decisions(log):
            place = (row.time, row.kind, row.result, f"{row.topic}-{row.partition}")
            found.setdefault((*place, row.replica, row.from_state, row.to_state), []).append(row)
    compared = 0
    with gzip.open(DATA / f"{run}-state-change-observed.jsonl.gz", "rt", encoding="utf-8") as lines:
        for seen in map(json.loads, lines):
            place = (seen["time"], *_KINDS[seen["what"]], seen["partition"])
            who = seen.get("replica", seen.get("broker"))
            rows = found[*place, who, seen.get("from_state"), seen.get("to_state")]
            by = (seen["controller"], seen["controller_epoch"])
            assert {row[2:4] for row in rows} == {by}
            if "body" in seen:
                body = seen["body"]
                said = (body["leader"], body["leaderEpoch"], body["isr"], body["replicas"])
                assert said in [(r.leader, r.leader_epoch, r.isr, r.replicas) for r in rows]
            if "state" in seen:
                assert None not in {rows[0].leader, rows[0].leader_epoch, rows[0].partition_epoch}
                assert rows[0].isr
            compared += 1
    assert compared > 250


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            (
                "Controller 1 epoch 5 changed partition [a-b,0] from OfflinePartition"
                " to OnlinePartition with leader 2"
            ),
            ("partition", "a-b", 0, 2, None, None, "ok"),
        ),
        (
            (
                "Controller 1 epoch 5 sending become-leader LeaderAndIsr request (Leader:1,ISR:1,2,"
                "LeaderEpoch:3,ControllerEpoch:5) to broker 1 for partition [f,0]"
            ),
            ("leader_and_isr", "f", 0, 1, 3, [1, 2], "ok"),
        ),
        (
            (
                "Controller 1 epoch 5 initiated state change for partition [f,0]"
                " from OfflinePartition to OnlinePartition failed"
            ),
            ("partition", "f", 0, None, None, None, "failed"),
        ),
        (
            (
                "[Controller id=1 epoch=5] Changed partition f-0 from NewPartition"
                " to OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=3,"
                " isr=ArrayBuffer(1, 2), leaderRecoveryState=RECOVERED, zkVersion=4)"
            ),
            ("partition", "f", 0, 1, 3, [1, 2], "ok"),
        ),
        (
            (
                "[Controller id=1 epoch=5] Changed partition f-0 from NewPartition"
                ' to OnlinePartition with state {"leader":1,"leader_epoch":3,"isr":[1,2]}'
            ),
            ("partition", "f", 0, 1, 3, [1, 2], "ok"),
        ),
    ],
)
def test_wordings_of_other_releases(message: str, expected: tuple[Any, ...]) -> None:
    line = f"[2024-02-29 03:37:35,281] INFO {message} (state.change.logger)"
    (row,) = state_change_log.decisions([line])
    said = (row.kind, row.topic, row.partition, row.leader, row.leader_epoch, row.isr, row.result)
    assert said == expected
    assert (row.time, row.controller_id, row.controller_epoch) == (1709177855281, 1, 5)


def test_the_last_records_of_a_log_are_a_partial_snapshot() -> None:
    (parsed,) = load({"log": (DATA / "zk-3.9-state-change.log.gz").read_bytes()}).values()
    found = good(parsed)
    assert named(found.snapshot, C.SNAPSHOT_COLUMNS)["complete"] is False
    led = [row for row in found.partitions if row[6]]
    assert len(led) > 20
    assert all(row[2] and row[8] is not None and row[9] for row in led)


# --- Damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_damaged_texts_never_raise(seed: int) -> None:
    chance = random.Random(seed)
    for name, data in texts_of(INSTANTS[seed % len(INSTANTS)]).items():
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 3, 30))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        cut = bytes(damaged[: chance.randrange(len(damaged))])
        for each in (bytes(damaged), cut, cut + data):
            for parsed in load({name: each}).values():
                assert (parsed.content is None) == bool(parsed.problems)


def test_readers_of_single_texts_refuse_in_one_way() -> None:
    for read in (
        lambda: describe_text.read(["x"]),
        lambda: kcat.read("x"),
        lambda: reassignment_json.read("x"),
        lambda: reassignment_json.read_list(["x"]),
        lambda: log_dirs_json.read("x"),
        lambda: log_dirs_json.read('{"brokers":[{"broker":"1","logDirs":3}]}'),
    ):
        with pytest.raises(BadInputError):
            read()
    (parsed,) = dump_log_text.snapshots(["x"], Asked("c"))
    assert parsed.problems
