"""Writes ZooKeeper's files: for states and layouts that no recorded file shows.

Its own reading of the formats, so that the product's readers are held against something else.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

Json = dict[str, Any]

ROOT_ACL = struct.pack(">i", 1) + struct.pack(">i", 31) + b"\0\0\0\5world\0\0\0\6anyone"
SESSION = 0x1000_0001_0000_0001


class Znode(NamedTuple):
    """The data of a znode and what ZooKeeper counts of it."""

    data: bytes | None = b""
    version: int = 0
    czxid: int = 1
    mzxid: int = 1
    pzxid: int = 1
    owner: int = 0
    time: int = 1_700_000_000_000
    cversion: int = 0

    def stat(self) -> bytes:
        numbers = (self.czxid, self.mzxid, self.time, self.time)
        counters = (self.version, self.cversion, 0, self.owner, self.pzxid)
        return struct.pack(">qqqqiiiqq", *numbers, *counters)


def string(value: str | None) -> bytes:
    return buffer(None if value is None else value.encode())


def buffer(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


# --- Trees -------------------------------------------------------------------------------------


def with_parents(znodes: Mapping[str, Znode]) -> dict[str, Znode]:
    """The znodes in an order in which parents come first, those that were left out added."""
    whole: dict[str, Znode] = {"": Znode()}
    for path in sorted(znodes):
        steps = path.split("/")[1:]
        for depth in range(1, len(steps)):
            whole.setdefault("/" + "/".join(steps[:depth]), Znode(None))
        whole[path] = znodes[path]
    return whole


def kafka_znodes(doc: Json, *, chroot: str = "", topic_version: int = 3) -> dict[str, Znode]:
    """The znodes of the cluster in a snapshot document, as Kafka 2.4 to 3.9 would have them."""

    def of(value: object, **stat: int) -> Znode:
        return Znode(json.dumps(value).encode(), **stat)

    znodes = {
        path: Znode(None)
        for path in (
            "/brokers/ids",
            "/brokers/topics",
            "/config/topics",
            "/config/brokers",
            "/config/users/alice",
            "/admin/delete_topics",
            "/isr_change_notification",
        )
    }
    controller = doc["controller"]
    znodes["/controller"] = of({"version": 2, "brokerid": controller["id"], "timestamp": "1"})
    znodes["/controller_epoch"] = Znode(str(controller["epoch"]).encode())
    znodes["/cluster/id"] = of({"version": "1", "id": doc["cluster"]})
    znodes["/config/brokers/<default>"] = of({"version": 1, "config": doc.get("configs", {})})
    for broker in doc["brokers"]:
        if broker.get("alive", True):
            path = f"/brokers/ids/{broker['id']}"
            znodes[path] = of(_registration(broker), czxid=broker["epoch"], owner=SESSION)
        if broker.get("configs"):
            path = f"/config/brokers/{broker['id']}"
            znodes[path] = of({"version": 1, "config": broker["configs"]})
    for topic in doc["topics"]:
        _add_topic(znodes, topic, topic_version, of)
    return {chroot + path: znode for path, znode in znodes.items()}


def _registration(broker: Json) -> Json:
    endpoint = f"PLAINTEXT://host{broker['id']}:9092"
    rack = {} if broker.get("rack") is None else {"rack": broker["rack"]}
    return {"version": 5, "host": "h", "port": 9092, "endpoints": [endpoint], **rack}


def _add_topic(znodes: dict[str, Znode], topic: Json, version: int, of: Any) -> None:  # noqa: ANN401
    name = topic["name"]
    listed = topic["partitions"]

    def lists(key: str) -> Json:
        return {str(p["partition"]): p[key] for p in listed if p.get(key)}

    assignment: Json = {"version": version, "partitions": lists("replicas")}
    if version > 1:
        assignment |= {"adding_replicas": lists("adding"), "removing_replicas": lists("removing")}
    if topic.get("id"):
        assignment["topic_id"] = topic["id"]
    znodes[f"/brokers/topics/{name}"] = of(assignment)
    znodes[f"/config/topics/{name}"] = of({"version": 1, "config": topic.get("configs", {})})
    if topic.get("queued_for_deletion"):
        znodes[f"/admin/delete_topics/{name}"] = Znode(None)
    for partition in listed:
        path = f"/brokers/topics/{name}/partitions/{partition['partition']}"
        znodes[path] = Znode(None)
        state = partition.get("state")
        if state:
            keys = ("leader", "leader_epoch", "isr", "controller_epoch")
            value = {"version": 1, **{key: state[key] for key in keys}}
            if state.get("recovery"):
                value["leader_recovery_state"] = state["recovery"]
            znodes[f"{path}/state"] = of(value, version=state["partition_epoch"])


# --- Snapshots ---------------------------------------------------------------------------------


def snapshot(
    znodes: Mapping[str, Znode],
    *,
    digest: tuple[int, int] | None = None,
    last_zxid: int | None = None,
    version: int = 2,
) -> bytes:
    """The bytes of a snapshot; *digest* is the zxid and the sum in its trailer."""
    found = struct.pack(">4siq", b"ZKSN", version, -1)
    found += struct.pack(">iqi", 1, SESSION, 4000)
    found += struct.pack(">iq", 1, 1) + ROOT_ACL
    for path, znode in with_parents(znodes).items():
        found += string(path) + buffer(znode.data) + struct.pack(">q", 1) + znode.stat()
    found = _sealed(found + string("/"))
    if digest is not None:
        found = _sealed(found + struct.pack(">qiq", digest[0], 2, digest[1]))
    if last_zxid is not None:
        found = _sealed(found + struct.pack(">q", last_zxid))
    return found


def _sealed(covered: bytes) -> bytes:
    return covered + struct.pack(">q", zlib.adler32(covered)) + string("/")


def digest_of(znodes: Mapping[str, Znode]) -> int:
    """The sum that ZooKeeper writes beside a tree."""
    total = 0
    for path, znode in with_parents(znodes).items():
        if not path.startswith("/zookeeper/"):
            order = (znode.czxid, znode.mzxid, znode.pzxid, znode.time, znode.time)
            stat = struct.pack(">qqqqqiiiq", *order, znode.version, znode.cversion, 0, znode.owner)
            total += zlib.crc32(path.encode() + (znode.data or b"") + stat)
    return total


def snappy(plain: bytes, block: int = 1 << 15) -> bytes:
    """As snappy-java's stream packs it."""
    codec = pa.Codec("snappy")
    packed = [
        buffer(codec.compress(plain[at : at + block], asbytes=True))
        for at in range(0, len(plain), block)
    ]
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(packed)


# --- Transaction logs --------------------------------------------------------------------------


def log(records: Sequence[bytes], *, zeros: int = 1000, version: int = 2) -> bytes:
    """The bytes of a log, filled up with zeros as ZooKeeper does in advance."""
    return struct.pack(">4siq", b"ZKLG", version, 0) + b"".join(records) + bytes(zeros)


def record(
    zxid: int,
    kind: int,
    body: bytes = b"",
    *,
    time: int = 1_700_000_001_000,
    session: int = SESSION,
    digest: int | None = None,
) -> bytes:
    """One transaction with its checksum."""
    entry = struct.pack(">qiqqi", session, 7, zxid, time, kind) + body
    if digest is not None:
        entry += struct.pack(">iq", 2, digest)
    return struct.pack(">q", zlib.adler32(entry)) + buffer(entry) + b"B"


CREATE, DELETE, SET_DATA, CHECK, MULTI, CLOSE_SESSION, ERROR = 1, 2, 5, 13, 14, -11, -1


def create(path: str, data: bytes | None, *, ephemeral: bool = False, children: int = -1) -> bytes:
    flags = struct.pack(">?i", ephemeral, children)
    return string(path) + buffer(data) + ROOT_ACL + flags


def set_data(path: str, data: bytes, version: int) -> bytes:
    return string(path) + buffer(data) + struct.pack(">i", version)


def multi(*parts: tuple[int, bytes]) -> bytes:
    found = struct.pack(">i", len(parts))
    return found + b"".join(struct.pack(">i", kind) + buffer(body) for kind, body in parts)


# --- Dumps -------------------------------------------------------------------------------------


def kazoo_lines(znodes: Mapping[str, Znode]) -> bytes:
    lines = []
    for path, znode in with_parents(znodes).items():
        stat = {
            "czxid": znode.czxid,
            "mzxid": znode.mzxid,
            "ctime": znode.time,
            "mtime": znode.time,
            "version": znode.version,
            "cversion": 0,
            "aversion": 0,
            "ephemeralOwner": znode.owner,
            "pzxid": znode.pzxid,
        }
        data = None if znode.data is None else base64.b64encode(znode.data).decode()
        lines.append(json.dumps({"path": path or "/", "data_b64": data, "stat": stat}))
    return "\n".join(lines).encode()


def zk_shell(znodes: Mapping[str, Znode]) -> bytes:
    return json.dumps(
        {
            path or "/": {
                "content": None if znode.data is None else base64.b64encode(znode.data).decode(),
                "acls": [],
            }
            for path, znode in with_parents(znodes).items()
        },
        indent=1,
    ).encode()


def burry(znodes: Mapping[str, Znode], *, date: str | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, znode in with_parents(znodes).items():
            archive.writestr(f"{path.removeprefix('/')}/content".lstrip("/"), znode.data or b"")
        if date is not None:
            archive.writestr(".burrymeta", json.dumps({"snapshot-date": date, "svc": "zk"}))
    return packed.getvalue()


def gz(plain: bytes) -> bytes:
    return gzip.compress(plain, mtime=0)
