"""The znodes of a running ZooKeeper, all of them as they were after one transaction.

Every answer of a server carries the zxid it has seen. A znode whose stat shows nothing newer than
the zxid seen before the first read was then as it is now. If that holds of all that was read, and
of the parents of what was not there, together they are the tree of that one instant, however long
the reading took. Otherwise it is read again.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources.content import Parsed
from understudy.sources.live.security import ZooKeeperAccess
from understudy.sources.zookeeper import kafka
from understudy.sources.zookeeper.kafka import Instant, Naming, Reader
from understudy.sources.zookeeper.tree import STAT, Nodes

_ATTEMPTS: Final = 5
_IN_FLIGHT: Final = 512
_SESSION_SECONDS: Final = 10.0


def read(
    hosts: str,
    access: ZooKeeperAccess,
    naming: Naming,
    *,
    form: str,
    snapshot_id: str,
    taken_at: int,
    seconds: float,
) -> Parsed:
    """The cluster in the ZooKeeper at *hosts* (``host:port,…/chroot``)."""
    client = _client(hosts, access)
    try:
        client.start(timeout=seconds)
        for _ in range(_ATTEMPTS):
            nodes, zxid, exact = _tree(client)
            if exact:
                break
    finally:
        client.stop()
        client.close()
    position = f"zxid 0x{zxid:x}" + ("" if exact else "; it changed while it was read")
    instant = Instant(snapshot_id, taken_at, form, position, exact)
    found = list(Reader(naming).read(nodes, instant))
    if len(found) != 1:
        raise BadInputError(
            f"{hosts}: several clusters are below this path: say which, HOST/chroot"
        )
    return found[0]


def _client(hosts: str, access: ZooKeeperAccess) -> Any:  # noqa: ANN401 - kazoo has no types
    from kazoo.client import KazooClient  # noqa: PLC0415 - an extra
    from kazoo.handlers.threading import SequentialThreadingHandler  # noqa: PLC0415

    context = access.context

    class Handler(SequentialThreadingHandler):  # type: ignore[misc]
        """Trusts whom the properties trust; kazoo would trust the system's authorities, too."""

        def create_connection(self, address: Any, hostname: str, timeout: float, **_: Any) -> Any:  # noqa: ANN401
            found = socket.create_connection(address, timeout)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return (
                found if context is None else context.wrap_socket(found, server_hostname=hostname)
            )

    return KazooClient(
        hosts=hosts,
        timeout=_SESSION_SECONDS,
        handler=Handler(),
        auth_data=[("digest", access.digest)] if access.digest else None,
    )


# --- Reading the tree --------------------------------------------------------------------------


def _tree(client: Any) -> tuple[Nodes, int, bool]:  # noqa: ANN401 - kazoo has no types
    """The znodes Kafka keeps, the zxid they were there at, and whether they all were."""
    client.sync("/")
    zxid = client.last_zxid
    reading = _Reading(client, zxid)
    reading.get([*kafka.SINGLE, *(each for path in kafka.LISTED for each in reading.below(path))])
    reading.get(_states(reading.nodes))
    return reading.nodes, zxid, reading.is_exact()


def _states(nodes: Nodes) -> Iterator[bytes]:
    """The state of every partition that some assignment names."""
    for path, (data, _) in list(nodes.items()):
        if path.rpartition(b"/")[0] == kafka.TOPICS:
            for number in _assigned(data):
                yield b"%s/partitions/%s/state" % (path, number.encode())


def _assigned(data: bytes | None) -> Iterable[str]:
    try:
        found = json.loads(data or b"{}")["partitions"]
    except (ValueError, KeyError, TypeError):
        return ()  # the reader of the tree says what is wrong with it
    return found if isinstance(found, dict) else ()


class _Reading:
    """One pass over the znodes; afterwards it knows whether nothing changed meanwhile."""

    def __init__(self, client: Any, zxid: int) -> None:  # noqa: ANN401 - kazoo has no types
        self._client = client
        self._zxid = zxid
        self._changed = False
        self._absent: list[bytes] = []
        self.nodes: Nodes = {}

    def below(self, path: bytes) -> list[bytes]:
        """The children of *path*, which is read itself as well."""
        from kazoo.exceptions import NoNodeError  # noqa: PLC0415 - an extra

        try:
            names, stat = self._client.get_children(path.decode(), include_data=True)
            self._put(path, b"", stat)
        except NoNodeError:
            self._absent.append(path)
            return []
        return [path + b"/" + name.encode() for name in names]

    def get(self, paths: Iterable[bytes]) -> None:
        """Read these znodes, many at a time; some may not be there."""
        from kazoo.exceptions import NoNodeError  # noqa: PLC0415 - an extra

        left = iter(paths)
        while some := list(islice(left, _IN_FLIGHT)):
            asked = [self._client.get_async(path.decode()) for path in some]
            for path, answer in zip(some, asked, strict=True):
                try:
                    self._put(path, *answer.get())
                except NoNodeError:
                    self._absent.append(path)

    def _put(self, path: bytes, data: bytes, stat: Any) -> None:  # noqa: ANN401 - kazoo has no types
        self._changed |= max(stat.czxid, stat.mzxid, stat.pzxid) > self._zxid
        self.nodes[path] = (
            data,
            STAT.pack(
                *(stat.czxid, stat.mzxid, stat.ctime, stat.mtime),
                *(stat.version, stat.cversion, stat.aversion, stat.ephemeralOwner, stat.pzxid),
            ),
        )

    def is_exact(self) -> bool:
        if self._changed:
            return False
        if self._client.last_zxid == self._zxid:
            return True
        known: dict[bytes, bool] = {}
        return all(self._was_absent(path, known) for path in self._absent)

    def _was_absent(self, path: bytes, known: dict[bytes, bool]) -> bool:
        """Whether *path* was not there at the beginning either: its parent lost no child since."""
        above = path.rpartition(b"/")[0]
        if above not in known:
            stat = self._client.exists(above.decode() or "/")
            known[above] = (
                self._was_absent(above, known) if stat is None else stat.pzxid <= self._zxid
            )
        return known[above]
