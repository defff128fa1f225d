"""ZooKeeper's files of real clusters: every recorded instant, in every form, as it was recorded."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from itertools import pairwise

import pytest

from understudy.sources import document
from understudy.sources.zookeeper import dumps, forms, snapshots, txnlog
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.tree import DIGEST_MASK, Tree, empty_nodes
from zookeeper_samples import DATA, RUNS, directory_of, load, naming, only, recorded, said, unpacked

LIMIT = document.MAX_UNCOMPRESSED_BYTES


@pytest.mark.parametrize("run", RUNS)
def test_every_recorded_snapshot_is_found_at_its_zxid(run: str) -> None:
    files = directory_of(run)
    for zxid, time, truth in recorded(run):
        content = only(load(files, Asked(naming(RUNS[run]), zxid=zxid)))
        assert said(content) == said(truth)
        assert content.snapshot_id == f"zxid-0x{zxid:x}"
        assert content.snapshot[0] <= time * 1000
        assert content.snapshot[8] is True


@pytest.mark.parametrize("run", RUNS)
def test_every_recorded_snapshot_is_found_at_its_time(run: str) -> None:
    files = directory_of(run)
    for _, time, truth in recorded(run)[::4]:
        content = only(load(files, Asked(naming(RUNS[run]), time=time)))
        assert said(content) == said(truth)


@pytest.mark.parametrize("run", RUNS)
def test_every_recorded_snapshot_is_among_every_change(run: str) -> None:
    changes = load(directory_of(run), Asked(naming(RUNS[run]), every_change=True))
    contents = [parsed.content for parsed in changes]
    assert all(contents)
    zxids = [int(content.snapshot_id[7:], 16) for content in contents if content]
    assert zxids == sorted(set(zxids))
    for zxid, _, truth in recorded(run):
        content = contents[bisect_right(zxids, zxid) - 1]
        assert content is not None
        assert said(content) == said(truth)


@pytest.mark.parametrize("run", RUNS)
def test_successive_changes_differ(run: str) -> None:
    changes = load(directory_of(run), Asked(naming(RUNS[run]), every_change=True))
    for before, after in pairwise(changes):
        assert before.content is not None
        assert after.content is not None
        assert (
            before.content.snapshot[6:9] != after.content.snapshot[6:9]
            or said(before.content) != said(after.content)
            or before.content.configs != after.content.configs
        )


@pytest.mark.parametrize("run", RUNS)
def test_every_snapshot_leads_to_the_same_end(run: str) -> None:
    """Fuzzy ones too, in whichever state they were written."""
    files = directory_of(run)
    logs = {name: data for name, data in files.items() if name.startswith("log.")}
    wanted = Asked(naming(RUNS[run]))
    from_the_beginning = only(load(logs, wanted))
    for name in set(files) - set(logs):
        later = only(load({**logs, name: files[name]}, wanted))
        assert later == from_the_beginning


@pytest.mark.parametrize("run", RUNS)
def test_a_snapshot_too_fuzzy_for_an_instant_is_passed_over(run: str) -> None:
    files = directory_of(run)
    logs = {name: data for name, data in files.items() if name.startswith("log.")}
    for name in set(files) - set(logs):
        found = snapshots.read(files[name], name, max_uncompressed_bytes=LIMIT)
        for zxid in range(max(found.zxid, 0x60), found.fuzzy_until + 1):
            wanted = Asked(naming(RUNS[run]), zxid=zxid)
            assert said(only(load(files, wanted))) == said(only(load(logs, wanted)))


def test_the_digest_of_every_transaction_is_that_of_the_tree() -> None:
    """ZooKeeper 3.6 and newer write the sum over all znodes beside each transaction."""
    files = directory_of("zk-3.9")
    tree = Tree(empty_nodes())
    compared = 0
    for name in sorted((n for n in files if n.startswith("log.")), key=txnlog.first_zxid_of):  # type: ignore[arg-type]
        for transaction in txnlog.read(files[name]):
            assert tree.apply(transaction) == []
            if transaction.digest is not None:
                assert tree.digest() == transaction.digest[1] & DIGEST_MASK
                compared += 1
    assert compared == 1783


def test_every_snapshot_format_holds_the_same_tree() -> None:
    truth = json.loads((DATA / "formats-truth.json").read_text())
    found = unpacked(DATA / "formats.tar.gz")
    assert len(found) == 8
    contents = []
    for name, data in found.items():
        assert forms.recognise(data[: forms.HEAD_BYTES], name) == forms.SNAPSHOT
        content = only(list(forms.parse(data, name, forms.SNAPSHOT, Asked(naming("3.9")))))
        assert said(content) == said(truth)
        assert content.snapshot[8] is True
        contents.append(content)
    assert all(content == contents[0] for content in contents)
    assert contents[0].snapshot_id == "snapshot-0x893"


@pytest.mark.parametrize("run", RUNS)
def test_a_dump_of_the_znodes_says_the_same(run: str) -> None:
    data = (DATA / run / "znodes.jsonl.gz").read_bytes()
    truth = json.loads((DATA / run / "truth.json").read_text())
    assert forms.recognise(data[: forms.HEAD_BYTES], "znodes.jsonl.gz") == forms.DUMP
    content = only(list(forms.parse(data, "znodes.jsonl.gz", forms.DUMP, Asked(naming(RUNS[run])))))
    assert said(content) == said(truth)
    assert content.snapshot[8] is True


def test_one_dump_per_line_is_one_snapshot_per_line() -> None:
    lines = gzip.decompress((DATA / "zk-3.9" / "znodes.jsonl.gz").read_bytes()).splitlines()
    nodes = [json.loads(line) for line in lines]
    data = b"\n".join(
        json.dumps({"dump": n, "time": 1794829129.5 + n, "zxid": 700 + n, "nodes": nodes}).encode()
        for n in (1, 2)
    )
    assert forms.recognise(data[: forms.HEAD_BYTES], "dumps.jsonl") == forms.DUMP
    found = list(forms.parse(data, "dumps.jsonl", forms.DUMP, Asked(naming("3.9"))))
    assert [parsed.snapshot_id for parsed in found] == ["dump-0x2bd", "dump-0x2be"]
    assert [parsed.position for parsed in found] == ["line 1", "line 2"]
    assert found[1].content is not None
    assert found[1].content.snapshot[0] == 1794829131_500_000


def test_the_text_of_the_snapshot_formatter_says_what_its_snapshot_does() -> None:
    data = (DATA / "zk-3.9" / "snapshot-formatter.txt.gz").read_bytes()
    assert forms.recognise(data[: forms.HEAD_BYTES], "x.txt") == forms.DUMP
    content = only(list(forms.parse(data, "x.txt", forms.DUMP, Asked(naming("3.9")))))
    binary = directory_of("zk-3.9")["snapshot.1fb"]
    alone = only(list(forms.parse(binary, "snapshot.1fb", forms.SNAPSHOT, Asked(naming("3.9")))))
    assert said(content) == said(alone)
    assert content.brokers == alone.brokers
    assert content.snapshot_id == "dump-0x1fb"
    assert content.snapshot[0] == alone.snapshot[0] // 1_000_000 * 1_000_000
    assert content.snapshot[8] is False  # a text cannot say how fuzzy its snapshot was


def test_a_text_without_data_is_refused() -> None:
    data = (DATA / "zk-2.8" / "snapshot-formatter-nodata.txt.gz").read_bytes()
    (refused,) = forms.parse(data, "x.txt", forms.DUMP, Asked(naming("2.8")))
    (problem,) = refused.problems
    assert problem.startswith("line 3: the text has no data; write it again with")


def test_a_truncated_text_is_refused() -> None:
    text = gzip.decompress((DATA / "zk-3.9" / "snapshot-formatter.txt.gz").read_bytes())
    cut = text[: text.rindex(b"----\n/config/")]
    with pytest.raises(Exception, match="the text is truncated"):
        list(dumps.read(cut, max_uncompressed_bytes=LIMIT))
