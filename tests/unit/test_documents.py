"""Snapshot documents: what is accepted, what is refused, with which words and where."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy import schemas
from understudy.sources import content as C
from understudy.sources.content import Content, Parsed
from understudy.sources.document import MAX_PROBLEMS, parse

DATA = Path(__file__).parents[1] / "data" / "documents"
Doc = dict[str, Any]

ZK: Doc = {
    "cluster": "c1",
    "snapshot_id": "s1",
    "taken_at": "2026-01-01T00:00:00Z",
    "mode": "zk",
    "controller": {"id": 1, "epoch": 7},
    "brokers": [{"id": 1, "epoch": 101, "rack": "a", "configs": {}}, {"id": 2}],
    "configs": {"unclean.leader.election.enable": "false"},
    "topics": [
        {
            "name": "orders",
            "configs": {"min.insync.replicas": "2"},
            "partitions": [
                {
                    "partition": 0,
                    "replicas": [3, 1, 2],
                    "state": {"leader": 1, "leader_epoch": 4, "isr": [2, 1]},
                },
                {"partition": 1, "replicas": [2, 1]},
            ],
        },
        {"name": "clicks", "partitions": [{"partition": 0, "replicas": [1]}]},
    ],
}
KRAFT: Doc = {
    "cluster": "c1",
    "snapshot_id": "s1",
    "mode": "kraft",
    "release": "4.3",
    "elr_enabled": True,
    "brokers": [{"id": 1, "fenced": True}, {"id": 2, "alive": False}, {"id": 3}],
    "topics": [
        {
            "name": "orders",
            "id": "Jf7mZcdYQr29QLBUR058VQ",
            "partitions": [
                {
                    "partition": 0,
                    "replicas": [1, 2],
                    "directories": ["d1", "d2"],
                    "state": {"leader": -1, "isr": [], "elr": [1], "last_known_elr": [-1]},
                }
            ],
        }
    ],
}


def one(data: bytes) -> Parsed:
    documents = list(parse(data))
    assert len(documents) == 1
    return documents[0]


def of(document: Doc) -> Parsed:
    return one(json.dumps(document).encode())


def good(document: Doc) -> Content:
    parsed = of(document)
    assert parsed.problems == ()
    assert parsed.content is not None
    return parsed.content


def rows(names: tuple[str, ...], found: list[C.Row]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in found]


def changed(document: Doc, *path: str | int, to: Any) -> Doc:  # noqa: ANN401 - any JSON value
    result = copy.deepcopy(document)
    holder: Any = result
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = to
    return result


def without(document: Doc, *path: str | int) -> Doc:
    result = copy.deepcopy(document)
    holder: Any = result
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return result


P = ("topics", 0, "partitions", 0)
STATE = (*P, "state")
AT_P = "topics[0].partitions[0]"

REFUSALS: list[tuple[str, Doc, str]] = [
    ("no cluster", without(ZK, "cluster"), 'the key "cluster" is missing'),
    ("no snapshot id", without(ZK, "snapshot_id"), 'the key "snapshot_id" is missing'),
    ("empty cluster", changed(ZK, "cluster", to=""), "cluster: the string is empty"),
    ("empty snapshot id", changed(ZK, "snapshot_id", to=""), "snapshot_id: the string is empty"),
    (
        "lone surrogate",
        changed(ZK, "cluster", to="\ud800"),
        "cluster: the string has half of a surrogate pair",
    ),
    ("mode", changed(ZK, "mode", to="raft"), 'mode: expected "zk" or "kraft", found "raft"'),
    (
        "taken_at",
        changed(ZK, "taken_at", to="yesterday"),
        'taken_at: "yesterday" is not an ISO-8601 time such as 2026-01-01T00:00:00Z',
    ),
    (
        "taken_at on no day",
        changed(ZK, "taken_at", to="2026-02-30T00:00:00Z"),
        'taken_at: "2026-02-30T00:00:00Z" is not an ISO-8601 time',
    ),
    ("taken_at number", changed(ZK, "taken_at", to=5), "taken_at: expected a string, found 5"),
    (
        "release",
        changed(ZK, "release", to="3"),
        'release: "3" is not a version such as 3.9 or 3.9.1',
    ),
    (
        "metadata version",
        changed(ZK, "metadata_version", to="3.9-IV"),
        'metadata_version: "3.9-IV" is not a version such as 3.9 or 3.7-IV2',
    ),
    (
        "unknown keys",
        {**ZK, "zebra": 1, "ant": 2},
        'unknown keys "ant", "zebra"',
    ),
    (
        "unknown key inside",
        changed(ZK, *STATE, "lead", to=1),
        f'{AT_P}.state: unknown key "lead"',
    ),
    (
        "unknown broker key",
        changed(ZK, "brokers", 0, "ID", to=1),
        'brokers[0]: unknown key "ID"',
    ),
    (
        "kraft key in a zk document",
        changed(ZK, "brokers", 0, "fenced", to=True),
        "brokers[0].fenced: only a KRaft document has this key",
    ),
    (
        "elr in a zk document",
        changed(ZK, *STATE, "elr", to=[1]),
        f"{AT_P}.state.elr: only a KRaft document has this key",
    ),
    ("brokers no list", changed(ZK, "brokers", to={}), "brokers: expected a list of objects"),
    (
        "broker no object",
        changed(ZK, "brokers", 1, to=2),
        "brokers[1]: expected an object, found 2",
    ),
    ("broker without id", without(ZK, "brokers", 1, "id"), 'brokers[1]: the key "id" is missing'),
    (
        "duplicate broker",
        changed(ZK, "brokers", 1, "id", to=1),
        "brokers[1].id: broker 1 is also brokers[0]",
    ),
    ("negative id", changed(ZK, "brokers", 0, "id", to=-1), "brokers[0].id: -1 is less than 0"),
    (
        "id beyond 32 bits",
        changed(ZK, "brokers", 0, "id", to=2**31),
        "brokers[0].id: 2147483648 does not fit 32 bits",
    ),
    (
        "broker epoch beyond 64 bits",
        changed(ZK, "brokers", 0, "epoch", to=2**63),
        "brokers[0].epoch: a number beyond 64 bits does not fit 64 bits",
    ),
    (
        "a boolean is no integer",
        changed(ZK, "brokers", 0, "id", to=True),
        "brokers[0].id: expected an integer, found true",
    ),
    (
        "a float is no integer",
        changed(ZK, "brokers", 0, "id", to=1.0),
        "brokers[0].id: expected an integer, found 1.0",
    ),
    (
        "an integer is no boolean",
        changed(ZK, "brokers", 0, "alive", to=1),
        "brokers[0].alive: expected true or false, found 1",
    ),
    (
        "NaN",
        changed(ZK, *STATE, "leader", to=float("nan")),
        f"{AT_P}.state.leader: expected an integer, found NaN",
    ),
    (
        "Infinity",
        changed(ZK, *STATE, "leader_epoch", to=float("inf")),
        f"{AT_P}.state.leader_epoch: expected an integer, found Infinity",
    ),
    (
        "duplicate topic",
        changed(ZK, "topics", 1, "name", to="orders"),
        'topics[1].name: topic "orders" is also topics[0]',
    ),
    ("topic without name", without(ZK, "topics", 0, "name"), 'topics[0]: the key "name" is'),
    ("topic named .", changed(ZK, "topics", 0, "name", to="."), "topics[0].name: a topic cannot"),
    ("topic named ..", changed(ZK, "topics", 0, "name", to=".."), "topics[0].name: a topic cannot"),
    ("topic named empty", changed(ZK, "topics", 0, "name", to=""), "topics[0].name: the string is"),
    (
        "long topic name",
        changed(ZK, "topics", 0, "name", to="x" * 250),
        "topics[0].name: a topic name has at most 249 characters, not 250",
    ),
    (
        "topic name with a blank",
        changed(ZK, "topics", 0, "name", to="a b"),
        'topics[0].name: "a b" has characters other than',
    ),
    (
        "topic name with a letter Kafka does not take",
        changed(ZK, "topics", 0, "name", to="caf\u00e9"),
        "topics[0].name: ",
    ),
    (
        "topic without partitions",
        changed(ZK, "topics", 1, "partitions", to=[]),
        "topics[1].partitions: a topic has at least one partition",
    ),
    (
        "topic with partitions left out",
        without(ZK, "topics", 1, "partitions"),
        "topics[1].partitions: a topic has at least one partition",
    ),
    (
        "duplicate partition",
        changed(ZK, "topics", 0, "partitions", 1, "partition", to=0),
        "topics[0].partitions[1].partition: partition 0 is also topics[0].partitions[0]",
    ),
    (
        "partition without number",
        without(ZK, *P, "partition"),
        f'{AT_P}: the key "partition" is missing',
    ),
    (
        "partition without replicas",
        without(ZK, *P, "replicas"),
        f'{AT_P}: the key "replicas" is missing',
    ),
    (
        "empty replicas",
        changed(ZK, *P, "replicas", to=[]),
        f"{AT_P}.replicas: a partition has at least one replica",
    ),
    (
        "replicas null",
        changed(ZK, *P, "replicas", to=None),
        f"{AT_P}.replicas: expected a list of broker ids, found null",
    ),
    (
        "duplicate replica",
        changed(ZK, *P, "replicas", to=[1, 2, 1]),
        f"{AT_P}.replicas[2]: broker 1 stands here twice",
    ),
    (
        "duplicate adding",
        changed(ZK, *P, "adding", to=[4, 4]),
        f"{AT_P}.adding[1]: broker 4 stands here twice",
    ),
    (
        "duplicate removing",
        changed(ZK, *P, "removing", to=[1, 1]),
        f"{AT_P}.removing[1]: broker 1 stands here twice",
    ),
    (
        "duplicate offline dir",
        changed(ZK, *P, "offline_dirs", to=[1, 1]),
        f"{AT_P}.offline_dirs[1]: broker 1 stands here twice",
    ),
    (
        "replica as text",
        changed(ZK, *P, "replicas", to=[1, "2"]),
        f'{AT_P}.replicas[1]: expected an integer, found "2"',
    ),
    (
        "leader below none",
        changed(ZK, *STATE, "leader", to=-2),
        f"{AT_P}.state.leader: -2 is less than -1",
    ),
    (
        "leader epoch beyond 32 bits",
        changed(ZK, *STATE, "leader_epoch", to=2**31),
        f"{AT_P}.state.leader_epoch: 2147483648 does not fit 32 bits",
    ),
    (
        "recovery",
        changed(ZK, *STATE, "recovery", to=2),
        f"{AT_P}.state.recovery: expected 0 (recovered) or 1 (recovering), found 2",
    ),
    (
        "unclean at the cluster",
        changed(ZK, "configs", "unclean.leader.election.enable", to="yes"),
        'configs.unclean.leader.election.enable: Kafka reads true or false here, not "yes"',
    ),
    (
        "min ISR of a topic",
        changed(ZK, "topics", 0, "configs", "min.insync.replicas", to="0"),
        "topics[0].configs.min.insync.replicas: Kafka reads an integer of at least 1 here",
    ),
    (
        "min ISR of a broker",
        changed(ZK, "brokers", 0, "configs", "min.insync.replicas", to="2.0"),
        "brokers[0].configs.min.insync.replicas: Kafka reads an integer of at least 1 here",
    ),
    (
        "static min ISR",
        {**ZK, "static_configs": {"min.insync.replicas": "99999999999"}},
        "static_configs.min.insync.replicas: Kafka reads an integer of at least 1 here",
    ),
    (
        "config without value",
        changed(ZK, "configs", "retention.ms", to=None),
        "configs.retention.ms: expected a string, found null",
    ),
    (
        "directories beside replicas",
        changed(KRAFT, *P, "directories", to=["d1"]),
        f"{AT_P}.directories: expected one for each of 2 replicas, found 1",
    ),
    (
        "controller id",
        changed(ZK, "controller", "id", to="1"),
        'controller.id: expected an integer, found "1"',
    ),
    ("controller key", changed(ZK, "controller", "host", to="h"), 'controller: unknown key "host"'),
]


@pytest.mark.parametrize(
    ("document", "problem"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_a_document_that_no_controller_could_hold_is_refused(document: Doc, problem: str) -> None:
    parsed = of(document)
    assert parsed.content is None
    assert len(parsed.problems) == 1, parsed.problems
    assert parsed.problems[0].startswith(problem)
    assert parsed.position == "line 1"


ODD_STATES: list[tuple[str, Doc]] = [
    ("leader outside the ISR", changed(ZK, *STATE, "isr", to=[3])),
    ("ISR outside the assignment", changed(ZK, *STATE, "isr", to=[9, 1])),
    ("ISR with a broker twice", changed(ZK, *STATE, "isr", to=[1, 1])),
    ("empty ISR", changed(ZK, *STATE, "isr", to=[])),
    ("no leader", changed(ZK, *STATE, "leader", to=-1)),
    ("leader nobody lists", changed(ZK, *STATE, "leader", to=99)),
    ("nobody alive", changed(ZK, "brokers", to=[])),
    ("adding outside the assignment", changed(ZK, *P, "adding", to=[77])),
    ("kraft keys that say nothing", {**ZK, "elr_enabled": False}),
    ("kraft keys that are null", changed(ZK, *P, "directories", to=None)),
    ("no topics", without(ZK, "topics")),
    ("no time", without(ZK, "taken_at")),
    ("old release", {**ZK, "release": "0.10.2.1"}),
    ("unclean with blanks", changed(ZK, "configs", "unclean.leader.election.enable", to=" TRUE ")),
    ("any other config", changed(ZK, "configs", "retention.ms", to="soon")),
]


@pytest.mark.parametrize(
    "document", [case[1] for case in ODD_STATES], ids=[case[0] for case in ODD_STATES]
)
def test_an_odd_state_that_a_controller_can_meet_is_accepted(document: Doc) -> None:
    good(document)


def test_defaults_of_a_zookeeper_document() -> None:
    content = good(
        {
            "cluster": "c1",
            "snapshot_id": "s1",
            "brokers": [{"id": 4, "alive": False}, {"id": 9}, {"id": 7}],
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partition": 0, "replicas": [1], "state": {}},
                        {"partition": 1, "replicas": [1]},
                    ],
                }
            ],
        }
    )
    snapshot = dict(zip(C.SNAPSHOT_COLUMNS, content.snapshot, strict=True))
    digest = snapshot.pop("content_digest")
    assert len(digest) == 64
    assert snapshot == {
        "taken_at": None,
        "mode": "zk",
        "source_form": "json",
        "release": "3.9",
        "metadata_version": "3.9",
        "elr_enabled": None,
        "controller_id": 7,
        "controller_epoch": 0,
        "complete": True,
    }
    assert rows(C.BROKER_COLUMNS, content.brokers)[1] == {
        "broker_id": 7,
        "alive": True,
        "shutting_down": False,
        "fenced": None,
        "broker_epoch": 0,
        "rack": None,
        "endpoints": None,
        "log_dirs": None,
    }
    led, never_led = rows(C.PARTITION_COLUMNS, content.partitions)
    nothing: Doc = {"adding": [], "removing": [], "offline_dirs": []}
    kraft_only = {"elr": None, "last_known_elr": None, "directories": None}
    place = {"topic": "t", "replicas": [1]}
    assert led == {
        **place,
        "partition": 0,
        **nothing,
        "has_state": True,
        "leader": -1,
        "leader_epoch": 0,
        "isr": [],
        "partition_epoch": 0,
        "controller_epoch": 0,
        "recovery": 0,
        **kraft_only,
    }
    assert never_led == {
        **place,
        "partition": 1,
        **nothing,
        "has_state": False,
        "leader": None,
        "leader_epoch": None,
        "isr": None,
        "partition_epoch": None,
        "controller_epoch": None,
        "recovery": None,
        **kraft_only,
    }


def test_defaults_of_a_kraft_document() -> None:
    content = good(KRAFT)
    snapshot = dict(zip(C.SNAPSHOT_COLUMNS, content.snapshot, strict=True))
    assert snapshot["controller_id"] == 3
    assert snapshot["metadata_version"] == "4.3"
    assert snapshot["elr_enabled"] is True
    fenced = {row["broker_id"]: row["fenced"] for row in rows(C.BROKER_COLUMNS, content.brokers)}
    assert fenced == {1: True, 2: True, 3: False}
    alive = {row["broker_id"]: row["alive"] for row in rows(C.BROKER_COLUMNS, content.brokers)}
    assert alive == {1: False, 2: False, 3: True}
    (partition,) = rows(C.PARTITION_COLUMNS, content.partitions)
    assert partition["controller_epoch"] is None
    assert partition["elr"] == [1]
    assert partition["last_known_elr"] == [-1]
    assert partition["directories"] == ["d1", "d2"]
    bare = good(without(without(KRAFT, *P, "directories"), *STATE))
    (partition,) = rows(C.PARTITION_COLUMNS, bare.partitions)
    assert (partition["elr"], partition["last_known_elr"], partition["directories"]) == ([], [], [])


def test_the_newest_protocol_of_a_release_is_its_default() -> None:
    def version(release: str) -> object:
        return good({**ZK, "release": release}).snapshot[4]

    assert version("4.1.2") == "4.1"
    assert version("2.8") == "2.8"
    assert version("0.10.2.1") == "0.10.2"


def test_times_with_any_offset_are_utc_microseconds() -> None:
    def taken_at(text: str) -> object:
        return good({**ZK, "taken_at": text}).snapshot[0]

    assert taken_at("1970-01-01T00:00:01Z") == 1_000_000
    assert taken_at("1970-01-01T02:00:00+02:00") == 0
    assert taken_at("1970-01-01T00:00:00.000001") == 1


def test_configs_become_rows_with_their_scope() -> None:
    content = good(
        {
            **changed(ZK, "brokers", 0, "configs", to={"min.insync.replicas": "3"}),
            "static_configs": {"unclean.leader.election.enable": "true"},
        }
    )
    assert content.configs == [
        ("broker", "1", "min.insync.replicas", "3"),
        ("cluster", None, "unclean.leader.election.enable", "false"),
        ("static", None, "unclean.leader.election.enable", "true"),
        ("topic", "orders", "min.insync.replicas", "2"),
    ]


def test_lists_keep_their_order() -> None:
    first = rows(C.PARTITION_COLUMNS, good(ZK).partitions)[1]
    assert (first["topic"], first["replicas"], first["isr"]) == ("orders", [3, 1, 2], [2, 1])


def test_everything_wrong_is_said_at_once() -> None:
    broken = changed(ZK, "topics", 0, "partitions", 0, "replicas", to=[1, 1, -5])
    broken = changed(broken, "mode", to="?")
    broken = changed(broken, "brokers", 1, "id", to=1)
    broken["extra"] = 1
    assert of(broken).problems == (
        'mode: expected "zk" or "kraft", found "?"',
        'unknown key "extra"',
        "brokers[1].id: broker 1 is also brokers[0]",
        "topics[0].partitions[0].replicas[1]: broker 1 stands here twice",
        "topics[0].partitions[0].replicas[2]: -5 is less than 0",
    )
    assert of(broken).cluster == "c1"
    assert of(broken).snapshot_id == "s1"


def test_very_many_problems_are_counted() -> None:
    problems = of(changed(ZK, *P, "replicas", to=[-1] * 5000)).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == "and 4,000 more problems"


def test_a_key_written_twice_is_named_with_its_path() -> None:
    text = json.dumps(ZK).replace('"leader": 1', '"leader": 1, "leader": 2')
    assert one(text.encode()).problems == (
        f"{AT_P}.state.leader: this key is written more than once",
    )
    text = json.dumps(ZK).replace('"cluster"', '"cluster": "c0", "cluster"', 1)
    assert one(text.encode()).problems == ("cluster: this key is written more than once",)
    text = json.dumps(ZK).replace('"min.insync.replicas"', '"a": "1", "a": "2", "b"')
    assert one(text.encode()).problems == (
        "topics[0].configs.a: this key is written more than once",
    )


BROKEN_FILES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "the file is empty"),
    ("only blanks", b" \n\t\r\n\n", "the file is empty"),
    ("only a byte order mark", b"\xef\xbb\xbf", "the file is empty"),
    ("not UTF-8", b'{"cluster": "\xff"}', "byte 14: the text is not UTF-8"),
    ("truncated", json.dumps(ZK).encode()[:-40], "column "),
    ("a list", json.dumps([ZK]).encode(), "a snapshot document is an object, not a list"),
    ("a number", b"17", "expected an object, found 17"),
    ("null", b"null", "expected an object, found null"),
    ("deep nesting", b"[" * 200_000, "the JSON is nested too deeply"),
    ("deep nesting of objects", b'{"a":' * 200_000, "the JSON is nested too deeply"),
    ("a number of thousands of digits", b"9" * 10_000, "a number has too many digits"),
    ("no JSON at all", b"Topic: orders", "column 1: not JSON: expecting value"),
    ("UTF-16", json.dumps(ZK).encode("utf-16"), "byte 1: the text is not UTF-8"),
]


@pytest.mark.parametrize(
    ("data", "problem"), [case[1:] for case in BROKEN_FILES], ids=[case[0] for case in BROKEN_FILES]
)
def test_a_broken_file_is_one_refusal(data: bytes, problem: str) -> None:
    parsed = one(data)
    assert parsed.content is None
    assert len(parsed.problems) == 1
    assert parsed.problems[0].startswith(problem)


def test_truncation_says_so_with_the_place() -> None:
    pretty = json.dumps(ZK, indent=1)
    cut = pretty[: pretty.index('"brokers"')].encode()
    problem = one(cut).problems[0]
    assert re.match(r"column \d+ of line 9: ", problem)
    assert "the JSON is truncated" in problem
    (problem,) = one(b'{"cluster": "c1",\n').problems
    assert problem.startswith("column 18: the JSON is truncated")


def test_a_syntax_error_has_its_line_and_column() -> None:
    text = '{\n "cluster": "c1",\n "snapshot_id" "s1"\n}'
    assert one(text.encode()).problems == (
        "column 16 of line 3: not JSON: expecting ':' delimiter",
    )


def compact(**changes: object) -> bytes:
    return json.dumps({**ZK, **changes}).encode()


def test_forms_of_a_file() -> None:
    pretty = json.dumps(ZK, indent=2).encode()
    expected = good(ZK)
    for data in (
        pretty,
        b"\xef\xbb\xbf" + pretty,
        b"\n\n" + pretty + b"\n\n",
        pretty.replace(b"\n", b"\r\n"),
        gzip.compress(pretty),
        gzip.compress(b"\xef\xbb\xbf" + compact()),
        compact(),
    ):
        assert one(data).content == expected
    assert one(b"\n\n" + pretty).position == "line 3"


def test_one_document_per_line() -> None:
    data = b"\n".join([compact(snapshot_id=f"s{n}") for n in range(3)] + [b"", compact()]) + b"\n"
    for form in (data, gzip.compress(data), data.replace(b"\n", b"\r\n")):
        documents = list(parse(form))
        assert [each.snapshot_id for each in documents] == ["s0", "s1", "s2", "s1"]
        assert [each.position for each in documents] == ["line 1", "line 2", "line 3", "line 5"]
        assert all(each.content for each in documents)


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("line", [b'{"cluster": "c1", "snap', b"garbage", b"{]", b"[]", b"\xff"])
def test_a_bad_line_is_refused_alone(bad: int, line: bytes) -> None:
    lines = [compact(snapshot_id=f"s{n}") for n in range(3)]
    lines[bad] = line
    documents = list(parse(b"\n".join(lines)))
    assert [each.content is None for each in documents] == [n == bad for n in range(3)]
    assert documents[bad].position == f"line {bad + 1}"


def test_lines_that_are_all_bad_are_refused_one_by_one() -> None:
    documents = list(parse(b'{"cluster": \n{"cluster": "c1"]\n'))
    assert [each.position for each in documents] == ["line 1", "line 2"]


def test_a_broken_document_over_many_lines_is_refused_once() -> None:
    # The object of a broker stands alone on its line and is whole: still no document.
    text = '{"cluster": "c1", "brokers": [\n{"id": 1}\n], "snapshot_id" }'
    assert one(text.encode()).problems[0].startswith("column 18 of line 3: not JSON")


def test_two_documents_over_many_lines_are_refused() -> None:
    pretty = json.dumps(ZK, indent=1).encode()
    assert "several must stand one per line" in one(pretty + b"\n" + pretty).problems[0]


def test_broken_gzip_is_never_believed() -> None:
    whole = gzip.compress(compact() + b"\n" + compact(snapshot_id="s2"), mtime=0)
    for length in range(2, len(whole)):
        parsed = one(whole[:length])
        assert parsed.problems == ("the gzip data is truncated",), length
    flipped = bytearray(whole)
    flipped[-6] ^= 1
    assert one(bytes(flipped)).problems[0].startswith("the gzip data is corrupt: CRC check failed")
    assert one(whole + b"trailing").problems[0].startswith("the gzip data is corrupt")


def test_a_gzip_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * 5_000_000)
    assert [each.problems for each in parse(bomb, max_uncompressed_bytes=1_000_000)] == [
        ("the file is larger than 1,000,000 bytes when uncompressed",)
    ]


def reordered(document: Doc) -> Doc:
    result = copy.deepcopy(document)
    result["brokers"].reverse()
    result["topics"].reverse()
    for topic in result["topics"]:
        topic["partitions"].reverse()
    return dict(reversed(result.items()))


def test_the_digest_is_of_content_and_not_of_form() -> None:
    assert good(ZK) == good(reordered(ZK))
    assert good(ZK) == good({**ZK, "release": "3.9", "metadata_version": "3.9"})


@pytest.mark.parametrize(
    "other",
    [
        {**ZK, "snapshot_id": "s2"},
        {**ZK, "taken_at": "2026-01-01T00:00:01Z"},
        {**ZK, "release": "3.8"},
        changed(ZK, *P, "replicas", to=[1, 3, 2]),
        changed(ZK, *STATE, "isr", to=[1, 2]),
        changed(ZK, *STATE, "recovery", to=1),
        changed(ZK, "brokers", 1, "alive", to=False),
        changed(ZK, "topics", 0, "configs", to={}),
        changed(ZK, "topics", 0, "queued_for_deletion", to=True),
    ],
)
def test_the_digest_changes_with_what_is_said(other: Doc) -> None:
    assert good(ZK).snapshot[-1] != good(other).snapshot[-1]


def test_columns_are_those_of_the_tables() -> None:
    columns = {
        "snapshots": C.SNAPSHOT_COLUMNS,
        "brokers": C.BROKER_COLUMNS,
        "topics": C.TOPIC_COLUMNS,
        "partitions": C.PARTITION_COLUMNS,
        "configs": C.CONFIG_COLUMNS,
    }
    for table, names in columns.items():
        assert ["cluster", "snapshot_id", *names] == schemas.SNAPSHOT_TABLES[table].names


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir()))
def test_documents_of_real_clusters_are_accepted(name: str) -> None:
    documents = list(parse((DATA / name).read_bytes()))
    assert documents
    assert [each.problems for each in documents] == [()] * len(documents)
    assert all(each.content and each.content.partitions for each in documents)


# --- Whatever the bytes, there is an answer and no exception -----------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["cluster", "snapshot_id", "brokers", "topics", "id", "name", "partitions", "state"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def answered(data: bytes) -> None:
    for parsed in parse(data, max_uncompressed_bytes=1_000_000):
        assert (parsed.content is None) == bool(parsed.problems)
        for problem in (*parsed.problems, parsed.cluster or "", parsed.snapshot_id or ""):
            problem.encode("utf-8")


@given(JSON_VALUES)
@settings(max_examples=300, deadline=None)
def test_any_json_value_is_answered(value: object) -> None:
    answered(json.dumps(value).encode())


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:0 \n\\u', max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_answered(data: bytes) -> None:
    answered(data)
    answered(gzip.compress(data))


PLACES: list[tuple[str | int, ...]] = []


def _collect(value: object, path: tuple[str | int, ...]) -> None:
    if path:
        PLACES.append(path)
    items: Callable[[], Any] | None = value.items if isinstance(value, dict) else None
    for key, inner in items() if items else enumerate(value) if isinstance(value, list) else ():
        _collect(inner, (*path, key))


_collect(KRAFT, ())


@given(st.sampled_from(PLACES), JSON_VALUES)
@settings(max_examples=300, deadline=None)
def test_any_value_anywhere_in_a_document_is_answered(
    path: tuple[str | int, ...], value: object
) -> None:
    answered(json.dumps(changed(KRAFT, *path, to=value)).encode())


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_flipped_bits_are_answered(data: st.DataObject) -> None:
    plain = compact()
    original = data.draw(st.sampled_from([plain, gzip.compress(plain, mtime=0)]))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    answered(bytes(damaged))
