"""Every form recognised by its content, sorted out of whatever lies together, and what is asked."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from understudy.errors import UsageError
from understudy.sources import forms, kcat, text_forms
from understudy.sources.forms import FORMS, Listed, Wanted
from understudy.sources.instants import instant
from understudy.sources.text_snapshot import Beside, ClusterText, snapshot
from zookeeper_samples import DATA as ZOOKEEPER
from zookeeper_samples import directory_of, unpacked

DATA = Path(__file__).parents[1] / "data"
TEXTS = sorted((DATA / "texts").glob("*.tar.gz"))
FORM_OF_TEXT = {
    r"topics-.*\.txt": "describe",
    r"kcat\.(?:txt|json)": "kcat",
    r"dump-log.*\.txt": "dump-log",
    r"reassign-generate\.txt": "reassignment",
    r"truth.*\.json": "json",
    r"(?:configs|features|endpoints|broker|log-dirs|quorum|reassign-list).*": text_forms.BESIDE,
}
LARGEST = 1000


def head(data: bytes) -> bytes:
    return data[: forms.HEAD_BYTES]


# --- One file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("archive", TEXTS, ids=lambda path: path.name)
def test_texts_are_recognised(archive: Path) -> None:
    for name, data in unpacked(archive).items():
        (form,) = (form for pattern, form in FORM_OF_TEXT.items() if re.fullmatch(pattern, name))
        assert forms.recognise(head(data), name) == form, name
        packed = head(gzip.compress(data))
        assert forms.recognise(packed, f"{name}.gz") == form, name


def test_files_of_zookeeper_are_recognised() -> None:
    for name, data in directory_of("zk-3.9").items():
        expected = "zookeeper" if name.startswith("log.") else "zk-snapshot"
        assert forms.recognise(head(data), name) == expected, name
    for name, data in unpacked(ZOOKEEPER / "formats.tar.gz").items():
        assert forms.recognise(head(data), Path(name).name) == "zk-snapshot", name
    for dump in ("zk-1.0/znodes.jsonl.gz", "zk-3.9/snapshot-formatter.txt.gz"):
        assert forms.recognise(head((ZOOKEEPER / dump).read_bytes()), "x") == "zk-dump", dump


def test_metadata_logs_are_recognised() -> None:
    for name, data in unpacked(DATA / "kraft-log" / "kraft-4.3" / "node1.tar.gz").items():
        if re.fullmatch(r".*/\d{20}.*", name):
            assert forms.recognise(head(data), Path(name).name) == "kraft", name


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b'{"cluster": "c"}', "json"),
        (b'\xef\xbb\xbf\n [{"cluster": "c"}]', "json"),
        (gzip.compress(b' {"cluster": "c"}', mtime=0), "json"),
        (b"hello", None),
        (b"\x7fELF" + bytes(100), None),
        (b"PAR1" + bytes(100), None),
        (b"PK\x03\x04 some other archive", None),
        (b"\x1f\x8b broken", None),
        (b"", None),
    ],
)
def test_documents_and_what_is_nothing(data: bytes, form: str | None) -> None:
    assert forms.recognise(data, "x") == form


# --- Many files --------------------------------------------------------------------------------


def sorted_out(*paths: str, **looked_at: str | None) -> tuple[dict[str, list[str]], dict[str, str]]:
    """What becomes of *paths*; those that have to be looked at say their form by their name."""
    listed = [Listed(path, 10) for path in paths]
    seen = {
        path: looked_at.get(Path(path).name.replace(".", "_"))
        for path in forms.to_look_at(listed, LARGEST)
    }
    found = forms.sort_out(listed, seen, LARGEST)
    return {form: sorted(paths) for form, paths in found.forms.items()}, found.unknown


def test_directories_count_as_a_whole_by_their_name() -> None:
    zookeeper = ["/z/version-2/log.1", "/z/version-2/log.8f", "/z/version-2/snapshot.0"]
    kafka = [
        "/k/__cluster_metadata-0/00000000000000000000.log",
        "/k/__cluster_metadata-0/00000000000000000007-0000000001.checkpoint",
        "/k/__cluster_metadata-0/quorum-state",
        "/k/meta.properties",
    ]
    beside = [
        "/z/version-2/acceptedEpoch",
        "/z/myid",
        "/k/bootstrap.checkpoint",
        "/k/recovery-point-offset-checkpoint",
        "/k/__cluster_metadata-0/00000000000000000000.index",
        "/k/__cluster_metadata-0/leader-epoch-checkpoint",
        "/k/orders-0/00000000000000000000.log",
        "/k/orders-0/anything.txt",
        "/k/orders-1.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log",
    ]
    listed = [Listed(path, 10) for path in (*zookeeper, *kafka, *beside)]
    assert forms.to_look_at(listed, LARGEST) == []
    found, unknown = sorted_out(*zookeeper, *kafka, *beside)
    assert found == {"zookeeper": sorted(zookeeper), "kraft": sorted(kafka)}
    assert unknown == {}


def test_of_a_directory_with_another_name_the_smallest_file_decides() -> None:
    listed = [
        Listed("/b/log.1", 500),
        Listed("/b/log.2", 20),
        Listed("/b/log.3", 30),
        Listed("/b/snapshot.0", 70),
        Listed("/c/00000000000000000000.log", 90),
        Listed("/c/00000000000000000100.log", 80),
        Listed("/d/00000000000000000000.log", LARGEST + 1),
    ]
    looked_at = forms.to_look_at(listed, LARGEST)
    assert sorted(looked_at) == ["/b/log.2", "/b/snapshot.0", "/c/00000000000000000100.log"]
    said = {
        "/b/log.2": "zookeeper",
        "/b/snapshot.0": "zk-snapshot",
        "/c/00000000000000000100.log": None,
    }
    found = forms.sort_out(listed, said, LARGEST)
    assert sorted(found.forms["zookeeper"]) == [
        "/b/log.1",
        "/b/log.2",
        "/b/log.3",
        "/b/snapshot.0",
    ]
    assert found.forms["kraft"] == ["/d/00000000000000000000.log"]  # its reader will say why not
    assert sorted(found.unknown) == ["/c/00000000000000000000.log", "/c/00000000000000000100.log"]


def test_files_called_like_a_log_that_are_texts() -> None:
    found, unknown = sorted_out("/a/log.1", "/a/log.2", log_1="state-change-log")
    assert found == {"state-change-log": ["/a/log.1", "/a/log.2"]}
    assert unknown == {}


def test_snapshots_without_logs_stand_alone_unless_one_directory_has_the_logs() -> None:
    alone, _ = sorted_out("/a/version-2/snapshot.1", "/b/version-2/snapshot.2")
    assert alone == {"zk-snapshot": ["/a/version-2/snapshot.1", "/b/version-2/snapshot.2"]}
    paired, _ = sorted_out("/a/version-2/snapshot.1", "/l/version-2/log.2")
    assert paired == {"zookeeper": ["/a/version-2/snapshot.1", "/l/version-2/log.2"]}


def test_what_is_of_no_form_is_said_and_what_only_stands_beside_is_not() -> None:
    found, unknown = sorted_out("/a/x.json", "/a/readme", "/a/_SUCCESS", x_json="json")
    assert found == {"json": ["/a/x.json"]}
    assert "none of the forms known: json, zookeeper" in unknown["/a/readme"]
    assert set(unknown) == {"/a/readme"}
    large = forms.sort_out([Listed("/a/big.json", LARGEST + 1)], {}, LARGEST)
    assert large.unknown == {"/a/big.json": "the file is larger than 1,000 bytes"}


# --- What is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"at": "yesterday"}, "expected zxid:0x1f or offset:812 or a time"),
        ({"release": "three"}, '--release: "three" is not a version such as 3.9'),
        ({"metadata_version": "x"}, "--metadata-version: .* is not a version such as"),
        ({"cluster": ""}, "--cluster: the string is empty"),
        ({"at": "offset:1", "every_change": True}, "give one of both"),
        ({"form": "json", "at": "offset:1"}, "form json is one instant"),
        ({"form": "json", "cluster": "c"}, "form json names its cluster itself"),
        ({"form": "json", "release": "3.9"}, "--release 3.9: form json says so itself"),
        ({"form": "kraft", "metadata_version": "3.9"}, "--metadata-version 3.9: form kraft says"),
        ({"form": "kraft", "at": "zxid:1"}, "an instant of form kraft is offset:812 or a"),
        ({"form": "zookeeper", "at": "offset:1"}, "an instant of form zookeeper is zxid:0x1f or a"),
        ({"form": "zk-snapshot", "every_change": True}, "a history is in zookeeper, kraft, dump"),
        ({"form": "describe", "at": "2026-01-01"}, "form describe is one instant"),
    ],
)
def test_what_makes_no_sense_together(wanted: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Wanted(**wanted).check()


@pytest.mark.parametrize(
    "wanted",
    [
        {"form": "zookeeper", "cluster": "c", "release": "2.8", "at": "zxid:0x1f"},
        {"form": "kraft", "at": "2026-01-01T00:00:00+02:00", "cluster": "c"},
        {"form": "dump-log", "every_change": True},
        {"form": "kcat", "release": "3.9", "metadata_version": "3.9"},
        {"at": "offset:812", "cluster": "c", "release": "3.9"},
        {},
    ],
)
def test_what_makes_sense(wanted: dict[str, Any]) -> None:
    Wanted(**wanted).check()
    assert Wanted(**wanted).settings() == wanted


def test_options_have_to_mean_something_to_what_is_found() -> None:
    Wanted(cluster="c", release="3.9").check_forms(["json", "describe"])
    with pytest.raises(UsageError, match="--at offset:1: form json is one instant"):
        Wanted(at="offset:1").check_forms(["kraft", "json"])
    with pytest.raises(UsageError, match="form json, kraft says so itself"):
        Wanted(release="3.9").check_forms(["json", "kraft"])


def test_every_form_has_a_name_and_words() -> None:
    assert tuple(FORMS) == (
        *("json", "zookeeper", "zk-snapshot", "zk-dump", "kraft"),
        *("dump-log", "describe", "kcat", "reassignment", "state-change-log"),
    )
    assert set(text_forms.FORMS) < set(FORMS)


def test_an_instant_is_the_same_for_all() -> None:
    assert instant("zxid:1F") == ("zxid", 31)
    assert instant("offset:0812") == ("offset", 812)
    assert instant("1970-01-01T00:00:01.0019") == ("time", 1001)
    with pytest.raises(UsageError, match=r"expected zxid:0x1f or a time such as 2026"):
        instant("offset:1", ("zxid", "time"))


def test_a_text_takes_the_release_it_does_not_say() -> None:
    said = ClusterText(kcat.FORM)
    parsed = snapshot(said, Beside(), "c", "0", release="3.9", metadata_version="3.8")
    assert parsed.content is not None
    assert parsed.content.snapshot[3:5] == ("3.9", "3.8")
    said_beside = snapshot(said, Beside(metadata_version="3.7"), "c", "0", metadata_version="3.8")
    assert said_beside.content is not None
    assert said_beside.content.snapshot[3:5] == (None, "3.7")
    assert parsed.content.snapshot[-1] != said_beside.content.snapshot[-1]
