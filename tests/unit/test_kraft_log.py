"""KRaft's metadata log against recorded clusters: every record, the state at every instant."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kraft_log_writer as writer
from kraft_log_samples import DATA, RUNS, Files, files_of
from understudy.sources import checksums, document, record_batches
from understudy.sources import content as C
from understudy.sources.content import Content, Parsed
from understudy.sources.kraft_directory import Asked, asked, plan, snapshots
from understudy.sources.kraft_records import decode


@pytest.fixture(scope="module", params=sorted(RUNS))
def run(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def files(run: str) -> Files:
    return files_of(run)


def load(files: Files, wanted: Asked) -> list[Parsed]:
    return list(snapshots(((name, files[name]) for name in plan(files, wanted)), wanted))


def loaded(files: Files, wanted: Asked) -> Content:
    (parsed,) = load(files, wanted)
    assert parsed.problems == ()
    assert parsed.content is not None
    return parsed.content


def json_lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def as_document(found: Any) -> Content:  # noqa: ANN401 - a recorded document
    (parsed,) = document.parse(json.dumps(found).encode())
    assert parsed.problems == ()
    assert parsed.content is not None
    return parsed.content


def comparable(content: Content) -> dict[str, Any]:
    """What a document can say: no endpoints, and settings of registered brokers only."""
    snapshot = dict(zip(C.SNAPSHOT_COLUMNS, content.snapshot, strict=True))
    registered = {str(broker[0]) for broker in content.brokers}
    return {
        "snapshot": {
            name: value
            for name, value in snapshot.items()
            if name not in ("source_form", "content_digest")
        },
        "brokers": [(*broker[:6], broker[7]) for broker in content.brokers],
        "topics": content.topics,
        "partitions": content.partitions,
        "configs": [
            config for config in content.configs if config[0] != "broker" or config[1] in registered
        ],
    }


def documents(run: str) -> Iterator[tuple[int, Any]]:
    for line in json_lines(DATA / run / "documents.jsonl.gz"):
        yield line["offset"], line["document"]


def test_the_checksum_is_castagnoli() -> None:
    assert checksums.crc32c(b"123456789") == 0xE3069283
    chance = random.Random(1)
    for length in (0, 1, 2, 3, 4, 5, 67, 1003):
        data = chance.randbytes(length)
        assert checksums.crc32c(data) == bit_by_bit(data)


@pytest.mark.parametrize("size", [1_000, 300_000, (1 << 22) + 77])
def test_the_checksum_of_any_part_of_a_file(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file is more than is calculated together, and without a compiled one."""
    monkeypatch.setattr(checksums, "_compiled", lambda: None)
    chance = random.Random(size)
    data = chance.randbytes(size)
    checksum = checksums.of(data)
    lengths = (0, 1, 3, 255, 256, 257, 5_000, 70_001)
    for start in [0, 1, 255, 256, 257, *(chance.randrange(size) for _ in range(50))]:
        for end in (min(size, start + length) for length in lengths):
            assert checksum(start, end) == checksums.crc32c(data[start:end])
    assert checksum(0, size) == checksums.crc32c(data)


def bit_by_bit(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_every_record_of_a_log_is_as_kafka_decodes_it() -> None:
    data = files_of("kraft-4.3")["00000000000000000000.log"]
    found: list[Any] = []
    for batch in record_batches.batches(data, "log"):
        assert isinstance(batch, record_batches.Batch)
        for record in decode(data, batch, "log"):
            said: dict[str, Any] = {"control": record.type}
            if not batch.control:
                said = {"type": record.type, "version": record.version, "data": record.data}
            at = {"offset": record.offset, "epoch": batch.epoch, "time": record.time}
            found.append({"batch": batch.base_offset, **at, **said})
    truth = list(json_lines(DATA / "kraft-4.3" / "records.jsonl.gz"))
    assert found == [{k: v for k, v in line.items() if k != "file"} for line in truth]


def test_the_writer_gives_the_bytes_of_a_real_log() -> None:
    data = files_of("kraft-4.3")["00000000000000000000.log"]
    written = 0
    for batch in record_batches.batches(data, "log"):
        assert isinstance(batch, record_batches.Batch)
        records = decode(data, batch, "log")
        if batch.control or {record.time for record in records} != {batch.base_time}:
            continue
        again = writer.batch(
            batch.base_offset,
            [writer.record(record.type, record.version, **record.data) for record in records],
            epoch=batch.epoch,
            time=batch.base_time,
        )
        assert again == data[batch.position : batch.end]
        written += 1
    assert written > 1000


def test_the_state_at_every_recorded_offset(run: str, files: Files) -> None:
    compared = 0
    for offset, recorded in documents(run):
        found = loaded(files, Asked(recorded["cluster"], offset=offset))
        assert comparable(found) == comparable(as_document(recorded)), offset
        compared += 1
    assert compared == {"kraft-4.3": 114, "kraft-3.9": 9}[run]


def test_the_newest_is_the_checkpoint_and_the_log_after_it(run: str, files: Files) -> None:
    *_, (offset, recorded) = documents(run)
    newest = loaded(files, Asked("c"))
    assert newest == loaded(files, Asked("c", offset=int(newest.snapshot_id[7:])))
    if run == "kraft-4.3":  # its log begins at offset 0
        log = {name: data for name, data in files.items() if name.endswith(".log")}
        assert loaded(log, Asked("c")) == newest
    assert offset <= int(newest.snapshot_id[7:])
    assert newest.snapshot[3:5] == (recorded["release"], recorded["metadata_version"])


def test_a_checkpoint_alone_is_the_log_below_its_end() -> None:
    files = files_of("kraft-4.3")
    log = {name: data for name, data in files.items() if name.endswith(".log")}
    ends = [name for name in files if name.endswith(".checkpoint") and name[0] == "0"]
    assert len(ends) == 6
    for name in ends:
        alone = loaded({name: files[name]}, Asked("c"))
        replayed = loaded(log, Asked("c", offset=int(name[:20]) - 1))
        assert alone.snapshot[6] is None  # a checkpoint does not say who leads
        assert comparable(alone) == {
            **comparable(replayed),
            "snapshot": {**comparable(replayed)["snapshot"], "controller_id": None},
        }


def test_an_instant_by_time(run: str, files: Files) -> None:
    for offset, recorded in list(documents(run))[::7]:
        found = loaded(files, asked(cluster="c", at=recorded["taken_at"]))
        assert int(found.snapshot_id[7:]) >= offset
        by_offset = loaded(files, Asked("c", offset=int(found.snapshot_id[7:])))
        assert found == by_offset


def test_every_change(run: str, files: Files) -> None:
    history = load(files, Asked("c", every_change=True))
    assert [parsed.problems for parsed in history if parsed.problems] == []
    offsets = [int((parsed.snapshot_id or "")[7:]) for parsed in history]
    assert offsets == sorted(set(offsets))
    assert len(history) > {"kraft-4.3": 250, "kraft-3.9": 30}[run]
    for parsed, offset in list(zip(history, offsets, strict=True))[:: len(history) // 12]:
        assert parsed.content == loaded(files, Asked("c", offset=offset))
    assert history[-1].content is not None
    newest = loaded(files, Asked("c"))
    assert history[-1].content.partitions == newest.partitions
    assert history[-1].content.brokers == newest.brokers


def test_the_cluster_is_named_by_the_file_above() -> None:
    files = files_of("kraft-4.3")
    (parsed,) = load(files, Asked())
    assert parsed.cluster == "corpusClusterIdAAAAAAA"
    assert parsed.position == "offset 2741 in 00000000000000000000.log"
    del files["meta.properties"]
    (parsed,) = load(files, Asked())
    assert parsed.problems == ("these files do not name their cluster: say --cluster NAME",)


def test_an_instant_the_files_do_not_reach() -> None:
    files = files_of("kraft-3.9")
    (late,) = load(files, Asked("c", offset=5000))
    assert late.problems == ("--at offset:5000: the files end at offset 1308",)
    (early,) = load(files, Asked("c", offset=10))
    (problem,) = early.problems
    assert "the log begins at offset 853" in problem
    (before,) = load(files, asked(cluster="c", at="2020-01-01T00:00:00Z"))
    assert before.content is None
