"""How many bytes a control request takes on the wire: an estimate from the message formats.

A request is ``base + topics * per_topic + names + partitions * per_partition + 4 * list elements``.
The coefficients follow from each version's fields. Left out on purpose: length prefixes that grow
past one byte, and which brokers exactly stand in the list of live leaders (as many as there are
partitions or brokers, whichever is fewer).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from understudy.controller.words import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA

_FRAME: Final = 4 + 2 + 2 + 4  # size, api key, api version, correlation id
_CLIENT_ID: Final = 2 + 4  # the controller's broker id as text
_UUID: Final = 16
_EPOCH: Final = 8
UNKNOWN_ENDPOINTS: Final = 48  # one listener of a broker whose endpoints nobody recorded
_HOST: Final = 24  # a host name in the list of live leaders
ELEMENT: Final = 4  # a broker id in a list


class Coefficients(NamedTuple):
    base: int
    per_topic: int  # beside the name itself
    per_partition: int  # beside names and list elements
    names_per_partition: bool  # old versions repeat the topic name for each partition
    per_live_broker: int  # beside endpoints and rack
    reassignment_lists: bool
    offline_replicas: bool


class _Format(NamedTuple):
    """The sizes that change when a version becomes flexible."""

    array: int
    string: int
    tags: int

    @staticmethod
    def of(*, flexible: bool) -> _Format:
        return _Format(1, 1, 1) if flexible else _Format(4, 2, 0)


def _header(f: _Format, *, with_broker_epoch: bool) -> int:
    """The request header, then the controller's id and epoch that open every body."""
    controller = 4 + 4
    return _FRAME + _CLIENT_ID + 2 * f.tags + controller + (_EPOCH if with_broker_epoch else 0)


def leader_and_isr(version: int) -> Coefficients:
    f = _Format.of(flexible=version >= 4)
    grouped = version >= 2
    lists = 4 if version >= 3 else 2
    return Coefficients(
        base=_header(f, with_broker_epoch=grouped)
        + (1 if version >= 5 else 0)
        + (1 if version >= 7 else 0)
        + 2 * f.array,
        per_topic=(f.string + f.array + f.tags + (_UUID if version >= 5 else 0)) if grouped else 0,
        per_partition=20
        + 4
        + lists * f.array
        + (1 if version >= 1 else 0)
        + (1 if version >= 6 else 0)
        + f.tags
        + (0 if grouped else f.string),
        names_per_partition=not grouped,
        per_live_broker=4 + f.string + _HOST + 4 + f.tags,
        reassignment_lists=version >= 3,
        offline_replicas=False,
    )


def update_metadata(version: int) -> Coefficients:
    f = _Format.of(flexible=version >= 6)
    grouped = version >= 5
    return Coefficients(
        base=_header(f, with_broker_epoch=grouped) + (1 if version >= 8 else 0) + 2 * f.array,
        per_topic=(f.string + f.array + f.tags + (_UUID if version >= 7 else 0)) if grouped else 0,
        per_partition=24
        + (3 if version >= 4 else 2) * f.array
        + f.tags
        + (0 if grouped else f.string),
        names_per_partition=not grouped,
        per_live_broker=4 + f.array + f.string + f.tags,
        reassignment_lists=False,
        offline_replicas=version >= 4,
    )


def stop_replica(version: int) -> Coefficients:
    f = _Format.of(flexible=version >= 2)
    grouped = version >= 1
    by_partition = version >= 3
    return Coefficients(
        base=_header(f, with_broker_epoch=grouped)
        + (0 if by_partition else 1)
        + (1 if version >= 4 else 0)
        + f.array,
        per_topic=(f.string + f.array + f.tags) if grouped else 0,
        per_partition=(4 + 4 + 1 + f.tags) if by_partition else 4 + (0 if grouped else f.string),
        names_per_partition=not grouped,
        per_live_broker=0,
        reassignment_lists=False,
        offline_replicas=False,
    )


FORMATS: Final = {
    LEADER_AND_ISR: leader_and_isr,
    UPDATE_METADATA: update_metadata,
    STOP_REPLICA: stop_replica,
}
NEWEST_VERSION: Final = {LEADER_AND_ISR: 7, UPDATE_METADATA: 8, STOP_REPLICA: 4}


def described(endpoints: str | None, rack: str | None) -> int:
    """Bytes of one live broker's endpoints and rack in an UpdateMetadata."""
    return (UNKNOWN_ENDPOINTS if endpoints is None else len(endpoints)) + len(rack or "")
