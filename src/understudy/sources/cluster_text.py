"""Texts that name brokers, the controller or the features of a cluster.

``kafka-broker-api-versions``, ``kafka-cluster list-endpoints``, a plain list of broker ids with
their racks, ``kafka-metadata-quorum describe --status`` and ``kafka-features describe``: each adds
to a text that names the partitions. Plain Python: this runs on executors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.kraft_image import ELR_VERSION, METADATA_VERSION
from understudy.sources.text_snapshot import Beside, BrokerText

_API_VERSIONS: Final = re.compile(
    r"(?P<endpoint>\S+) \(id: (?P<id>\d+) rack: (?P<rack>.*?)"
    r"(?: isFenced: (?P<fenced>true|false))?\) -> (?P<answer>\(|ERROR: .*)",
    re.ASCII,
)
_ENDPOINTS_HEAD: Final = re.compile(r"ID\s+HOST\s+PORT\s+RACK\s+STATE\s+ENDPOINT_TYPE\s*")
_ENDPOINT: Final = re.compile(
    r"(?P<id>\d+)\s+(?P<host>\S+)\s+(?P<port>\d+)\s+(?P<rack>\S+)\s+(?P<state>fenced|unfenced)"
    r"\s+(?P<kind>broker|controller)\s*",
    re.ASCII,
)
_LISTED: Final = re.compile(r"(?P<id>\d+)(?:\s+(?P<rack>[^\s:]+))?\s*", re.ASCII)
_QUORUM: Final = re.compile(r"(?P<key>ClusterId|LeaderId|LeaderEpoch):\s*(?P<value>\S+)\s*")
_FEATURE: Final = re.compile(
    r"Feature: (?P<name>\S+)\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+"
    r"\s+FinalizedVersionLevel: (?P<level>\S+)\s+Epoch: .*",
    re.ASCII,
)


def reader(head: str) -> Callable[[Iterable[str]], Beside] | None:
    """The reader of a text of one of these kinds; null for another."""
    lines = [line for line in head.splitlines() if line.strip()]
    for pattern, read in (
        (_API_VERSIONS, read_api_versions),
        (_ENDPOINTS_HEAD, read_endpoints),
        (_QUORUM, read_quorum),
        (_FEATURE, read_features),
    ):
        if any(pattern.fullmatch(line) for line in lines):
            return read
    # The last line may be cut off: this is only the head of a text.
    listed = lines and all(_LISTED.fullmatch(line) for line in lines[:-1] or lines)
    return read_list if listed else None


def read_api_versions(lines: Iterable[str]) -> Beside:
    """The brokers that answered."""
    brokers = {}
    for line in lines:
        found = _API_VERSIONS.fullmatch(line.rstrip())
        if found and found["answer"] == "(":
            rack = None if found["rack"] == "null" else found["rack"]
            fenced = None if found["fenced"] is None else found["fenced"] == "true"
            brokers[int(found["id"])] = BrokerText(rack, found["endpoint"], fenced)
    return Beside(brokers=brokers)


def read_endpoints(lines: Iterable[str]) -> Beside:
    """The brokers registered, fenced ones marked."""
    brokers = {}
    for number, line in enumerate(lines, start=1):
        found = _ENDPOINT.fullmatch(line)
        if found and found["kind"] == "broker":
            rack = None if found["rack"] == "null" else found["rack"]
            endpoint = f"{found['host']}:{found['port']}"
            brokers[int(found["id"])] = BrokerText(rack, endpoint, found["state"] == "fenced")
        elif not found and line.strip() and not _ENDPOINTS_HEAD.fullmatch(line):
            raise BadInputError(f"line {number}: no line of kafka-cluster list-endpoints")
    return Beside(brokers=brokers, mode="kraft")


def read_list(lines: Iterable[str]) -> Beside:
    """The live brokers, one per line, each with its rack if it has one."""
    brokers = {}
    for number, line in enumerate(lines, start=1):
        found = _LISTED.fullmatch(line.strip())
        if found:
            brokers[int(found["id"])] = BrokerText(found["rack"])
        elif line.strip():
            raise BadInputError(f"line {number}: expected a broker id, or an id and a rack")
    return Beside(brokers=brokers)


def read_quorum(lines: Iterable[str]) -> Beside:
    """The raft leader, its epoch and the cluster's id."""
    found = {m["key"]: m["value"] for line in lines if (m := _QUORUM.fullmatch(line))}
    leader, epoch = found.get("LeaderId", ""), found.get("LeaderEpoch", "")
    controller = (int(leader), int(epoch)) if leader.isdecimal() and epoch.isdecimal() else None
    return Beside(found.get("ClusterId"), "kraft", controller=controller)


def read_features(lines: Iterable[str]) -> Beside:
    """The metadata version, and whether the ELR feature is on."""
    levels = {m["name"]: m["level"] for line in lines if (m := _FEATURE.fullmatch(line.rstrip()))}
    version = levels.get(METADATA_VERSION)
    if version is None:  # ZooKeeper mode has features too, but not this one
        return Beside()
    elr = levels.get(ELR_VERSION, "0")
    return Beside(mode="kraft", metadata_version=version, elr_enabled=elr not in ("0", "-"))
