"""Damaged ZooKeeper files: refused with a sentence, or read as what they still say; nothing else.

Seeded, so that what fails once fails again. The files are real ones.
"""

from __future__ import annotations

import functools
import gzip
import json
import tracemalloc
from pathlib import Path
from random import Random

import pytest

import zookeeper_writer as zk
from understudy.sources.content import Content, Parsed
from understudy.sources.zookeeper import forms
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.kafka import Naming
from zookeeper_samples import DATA, directory_of, load, unpacked

FEW, MANY = 200, 2_000
MOST_MEMORY = 64 * 2**20
WANTED = Asked(Naming(cluster="it"), max_uncompressed_bytes=2**24)
RUN, LOG = "zk-1.0", "log.242"

counts = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])


def mutated(data: bytes, other: bytes, rng: Random) -> bytes:
    """The bytes with some flipped, cut off, cut out, doubled, or taken from another file."""
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice([1, 4, 17, 300, 5000]))
    kind = rng.randrange(7)
    if kind == 0:
        return data[:start]
    if kind == 1:
        return data[:start] + data[end:]
    if kind == 2:
        return data[:end] + data[start:]
    if kind == 3:
        return data[:start] + other[start:end] + data[end:]
    if kind == 4:
        return data[:start] + bytes(end - start) + data[end:]
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        # Most flips where something is written, not in the zeros at the end of a log.
        found[rng.randrange(len(data.rstrip(b"\0")) or 1)] ^= 1 << rng.randrange(8)
    return bytes(found)


def snapshot_forms() -> dict[str, bytes]:
    found = {
        name.partition("/")[0]: data for name, data in unpacked(DATA / "formats.tar.gz").items()
    }
    return {each: found[each] for each in ("zk-3.9.5-plain", "zk-3.8.4-gz", "zk-3.8.4-snappy")}


def named(form: str) -> str:
    ending = {"gz": ".gz", "snappy": ".snappy"}.get(form.rpartition("-")[2], "")
    return f"snapshot.893{ending}"


@counts
@pytest.mark.parametrize("form", list(snapshot_forms()))
def test_a_damaged_snapshot_is_refused_or_whole(form: str, count: int) -> None:
    data = snapshot_forms()[form]
    other = zk.snapshot({})
    (good,) = forms.parse(data, named(form), forms.SNAPSHOT, WANTED)
    rng = Random(form)
    refused = 0
    tracemalloc.start()
    for _ in range(count):
        damaged = mutated(data, other + data[1000:], rng)
        (found,) = forms.parse(damaged, named(form), forms.SNAPSHOT, WANTED)
        refused += found.content is None
        assert found == good or (found.content is None and found.problems)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY
    assert refused > count * 0.9


@functools.cache
def states() -> dict[int, Content]:
    """What is true after every transaction of the run."""
    changes = load(directory_of(RUN), Asked(WANTED.naming, every_change=True))
    return {
        int(parsed.content.snapshot_id[7:], 16): parsed.content
        for parsed in changes
        if parsed.content is not None
    }


def is_true(parsed: Parsed) -> bool:
    """Whether a snapshot says what was so at its zxid."""
    assert parsed.content is not None
    zxid = int(parsed.content.snapshot_id[7:], 16)
    truth = states()[max(each for each in states() if each <= zxid)]
    found = parsed.content
    return (found.brokers, found.topics, found.partitions, found.configs) == (
        truth.brokers,
        truth.topics,
        truth.partitions,
        truth.configs,
    ) and found.snapshot[6:8] == truth.snapshot[6:8]


@counts
def test_a_damaged_log_is_refused_or_read_to_where_it_is_good(count: int) -> None:
    files = directory_of(RUN)
    other = files["log.15e"]
    rng = Random(LOG)
    refused = 0
    for _ in range(count):
        found = load({**files, LOG: mutated(files[LOG], other, rng)}, WANTED)
        refused += any(parsed.content is None for parsed in found)
        assert found
        for parsed in found:
            assert parsed.problems if parsed.content is None else is_true(parsed)
    assert refused > count * 0.4


@counts
def test_a_damaged_log_before_the_last_is_never_bridged(count: int) -> None:
    files = {name: data for name, data in directory_of(RUN).items() if name.startswith("log.")}
    rng = Random("before")
    newest = max(states())
    for _ in range(count // 10):
        damaged = {**files, "log.c5": mutated(files["log.c5"], files[LOG], rng)}
        (parsed,) = load(damaged, WANTED)
        if parsed.content is None:
            assert parsed.problems
        else:
            assert is_true(parsed)
            assert int(parsed.content.snapshot_id[7:], 16) >= newest


def dump_forms() -> dict[str, bytes]:
    lines = gzip.decompress((DATA / "zk-3.9" / "znodes.jsonl.gz").read_bytes()).splitlines()
    nodes = [json.loads(line) for line in lines]
    shell = {node["path"]: {"content": node["data_b64"], "acls": []} for node in nodes}
    znodes = {node["path"]: zk.Znode(b"{}") for node in nodes if node["path"] != "/"}
    return {
        "lines": b"\n".join(lines),
        "packed lines": (DATA / "zk-3.9" / "znodes.jsonl.gz").read_bytes(),
        "one line": json.dumps({"zxid": 9, "nodes": nodes}).encode(),
        "formatter": gzip.decompress((DATA / "zk-3.9" / "snapshot-formatter.txt.gz").read_bytes()),
        "zk-shell": json.dumps(shell).encode(),
        "burry": zk.burry(znodes, date="2026-01-01T00:00:00Z"),
    }


@pytest.mark.parametrize("form", list(dump_forms()))
def test_a_damaged_dump_gives_sentences(form: str) -> None:
    """A text has no checksum, so it may still be read; but it never raises."""
    data = dump_forms()[form]
    rng = Random(form)
    for _ in range(FEW // 4):
        damaged = mutated(data, Path(__file__).read_bytes() * 20, rng)
        for parsed in forms.parse(damaged, "x", forms.DUMP, WANTED):
            assert parsed.content is not None or parsed.problems
