"""A data directory of ZooKeeper: the tree at an instant, or after every change.

The tree at an instant is a snapshot from before it and every transaction since. Files come one at
a time and are let go of, so memory is bounded by the tree and the largest file. Nothing is
bridged: a hole between the transactions, a log without a beginning, or logs that contradict the
snapshot they should go on from are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from understudy.errors import BadInputError, UsageError
from understudy.sources import document
from understudy.sources.content import Content, Parsed
from understudy.sources.instants import TIME, ZXID, instant
from understudy.sources.zookeeper import snapshots, txnlog
from understudy.sources.zookeeper.kafka import Instant, Naming, Reader, may_change_kafka, roots
from understudy.sources.zookeeper.snapshots import Snapshot
from understudy.sources.zookeeper.tree import (
    DIGEST_MASK,
    DIGEST_VERSION,
    Nodes,
    Tree,
    empty_nodes,
    is_reserved,
)
from understudy.sources.zookeeper.txnlog import CloseSession, Transaction

FORM: Final = "zookeeper"
INSTANTS: Final = (ZXID, TIME)

_FIRST_ZXIDS: Final = (1, 2**32 + 1)
"""Of a server alone, and of an ensemble, whose first leader begins epoch 1."""
_COUNTER: Final = 2**32 - 1
_CANDIDATES: Final = 4
"""So many snapshots are tried before the directory is refused."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which instants are wanted, and what the files do not say of their cluster."""

    naming: Naming = field(default_factory=Naming)
    zxid: int | None = None
    time: int | None = None
    """Milliseconds since 1970."""
    every_change: bool = False
    max_uncompressed_bytes: int = document.MAX_UNCOMPRESSED_BYTES


def asked(
    *,
    cluster: str | None = None,
    release: str | None = None,
    metadata_version: str | None = None,
    at: str | None = None,
    every_change: bool = False,
    max_uncompressed_bytes: int | None = None,
) -> Asked:
    """What ``--cluster``, ``--release``, ``--at`` and the like say."""
    if at is not None and every_change:
        raise UsageError("--at picks one instant and --every-change all of them: give one of both")
    picked = None if at is None else instant(at, INSTANTS)
    return Asked(
        Naming(cluster, release, metadata_version),
        zxid=picked.value if picked and picked.kind == ZXID else None,
        time=picked.value if picked and picked.kind == TIME else None,
        every_change=every_change,
        max_uncompressed_bytes=max_uncompressed_bytes or document.MAX_UNCOMPRESSED_BYTES,
    )


# --- Which files are needed --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to read, in this order: snapshots to begin with, the best first, then logs."""

    names: tuple[str, ...]
    settled_by: int | None
    """A snapshot that may hold transactions after this one is of no use."""
    problem: str | None = None


def plan(names: Iterable[str], wanted: Asked, log_starts: Mapping[str, int] | None = None) -> Plan:
    """Choose among the files of one directory, by their names alone.

    To find a time, *log_starts* has the time of the first transaction in each log.
    """
    known = list(names)
    taken = sorted((_zxid(name), name) for name in known if snapshots.zxid_of(name) is not None)
    logs = sorted((_zxid(name), name) for name in known if txnlog.first_zxid_of(name) is not None)
    begins = bool(logs) and logs[0][0] in _FIRST_ZXIDS
    if wanted.every_change:
        chosen = [] if begins else taken[:_CANDIDATES]
        return Plan(_names(chosen, _covering(logs, chosen)), None)
    settled_by = wanted.zxid
    if wanted.time is not None:
        started = [each for each in logs if (log_starts or {}).get(each[1], 0) <= wanted.time]
        if not started:
            return Plan((), None, "no transaction log reaches back to that time")
        settled_by = started[-1][0] - 1
        logs = started
    elif wanted.zxid is not None:
        # One log more than is asked for shows how long a fuzzy snapshot went on.
        after = [each for each in logs if each[0] > wanted.zxid][:1]
        logs = [each for each in logs if each[0] <= wanted.zxid] + after
    before = [each for each in taken if settled_by is None or each[0] <= settled_by]
    chosen = before[::-1][:_CANDIDATES]
    needed = logs if begins and len(chosen) == len(before) else _covering(logs, chosen)
    if not chosen and not needed:
        return Plan((), None, "no snapshot and no transaction log reaches back to that instant")
    return Plan(_names(chosen, needed), settled_by)


def _zxid(name: str) -> int:
    found = snapshots.zxid_of(name)
    found = txnlog.first_zxid_of(name) if found is None else found
    return found or 0


def _names(*files: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name for part in files for _, name in part)


def _covering(
    logs: Sequence[tuple[int, str]], chosen: Sequence[tuple[int, str]]
) -> Sequence[tuple[int, str]]:
    """The logs from the one on that holds the transaction after the oldest snapshot."""
    if not chosen:
        return logs
    oldest = min(zxid for zxid, _ in chosen)
    before = [place for place, (zxid, _) in enumerate(logs) if zxid <= oldest + 1]
    return logs[before[-1] if before else 0 :]


# --- Reading them ------------------------------------------------------------------------------


def read(
    files: Iterable[tuple[str, bytes]], wanted: Asked, settled_by: int | None = None
) -> Iterator[Parsed]:
    """The snapshots in the files of a :class:`Plan`, each given as name and bytes."""
    history = _History(wanted, settled_by)
    try:
        for name, data in files:
            if snapshots.zxid_of(name) is not None:
                yield from history.begin(name, data)
            else:
                yield from history.go_on(name, data)
            if history.finished:
                break
        yield from history.end()
    except BadInputError as error:
        yield history.refused(str(error))


class _History:
    """The tree as the files are read, and what is known of it."""

    def __init__(self, wanted: Asked, settled_by: int | None) -> None:
        self.finished = False
        self._asked = wanted
        self._settled_by = settled_by
        self._reader = Reader(wanted.naming, keep=wanted.every_change)
        self._tree: Tree | None = None
        self._base: Snapshot | None = None
        self._files: list[str] = []
        self._last = 0
        """The last transaction that is in the tree, or would be but for its fuzziness."""
        self._time: int | None = None
        self._exact = True
        self._told: dict[str, object] = {}
        self._reached: tuple[Instant, Nodes] | None = None
        """The instant asked for, once a transaction after it is met."""
        self._seen = 0
        """The last transaction met, which may be after the instant asked for."""

    # What a file adds

    def begin(self, name: str, data: bytes) -> Iterator[Parsed]:
        """Take a snapshot to begin with, unless there is one; say so if it is damaged."""
        if self._tree is not None:
            return
        try:
            found = snapshots.read(
                data, name, max_uncompressed_bytes=self._asked.max_uncompressed_bytes
            )
        except BadInputError as error:
            yield self.refused(f"{name}: {error}", position=name)
            return
        if self._settled_by is not None and found.fuzzy_until > self._settled_by:
            return
        self._base, self._tree = found, Tree(found.nodes)
        self._last = self._seen = found.zxid
        self._files = [name]

    def go_on(self, name: str, data: bytes) -> Iterator[Parsed]:
        """Apply the transactions of a log."""
        if self._tree is None:
            first = txnlog.first_zxid_of(name)
            if first not in _FIRST_ZXIDS:
                raise BadInputError(f"{name}: there is no good snapshot for the log to go on from")
            self._tree = Tree(empty_nodes())
            self._last = self._seen = first - 1
        self._files = [*self._files[:1], name] if self._base else [name]
        try:
            for transaction in txnlog.read(data):
                if transaction.zxid <= self._last:
                    self._pass(transaction)
                    continue
                self._check_follows(transaction)
                if self._is_after(transaction):
                    self._look_ahead(transaction)
                else:
                    yield from self._step(transaction)
                if self.finished:
                    return
        except BadInputError as error:
            if self._reached is None:
                raise BadInputError(f"{name}: {error}") from error
            self._exact, self.finished = False, True  # what is after the instant cannot be told

    def _step(self, transaction: Transaction) -> Iterator[Parsed]:
        if self._asked.every_change and not self._told:
            yield from self._changes()
        self._apply(transaction)
        if self._asked.every_change and _touches_kafka(transaction):
            yield from self._changes()

    def _pass(self, transaction: Transaction) -> None:
        """A transaction that the snapshot holds already tells when that one was."""
        if transaction.zxid == self._last and self._time is None:
            self._time = transaction.time

    def _check_follows(self, transaction: Transaction) -> None:
        """ZooKeeper numbers without holes; a new leader begins a new epoch, at 1."""
        zxid, last = transaction.zxid, self._seen
        next_epoch = zxid >> 32 > last >> 32 and zxid & _COUNTER <= 1
        if zxid != last + 1 and not next_epoch:
            raise BadInputError(
                f"byte {transaction.position:,}: transaction 0x{zxid:x} follows 0x{last:x};"
                " what was between them is missing"
            )
        self._seen = zxid

    def _is_after(self, transaction: Transaction) -> bool:
        zxid, time = self._asked.zxid, self._asked.time
        return (
            self._reached is not None
            or (zxid is not None and transaction.zxid > zxid)
            or (time is not None and transaction.time > time)
        )

    def _apply(self, transaction: Transaction) -> None:
        tree = self._known_tree()
        surprising = [path for path in tree.apply(transaction) if not is_reserved(path)]
        self._last, self._time = transaction.zxid, transaction.time
        base = self._base
        if base is not None and transaction.zxid <= base.fuzzy_until:
            return
        bounded = base is None or base.bounded
        # Where nothing bounds the fuzziness, what is missing may only be missing already.
        surprising = [path for path in surprising if bounded or path in tree.nodes]
        wrong = [path for path in surprising if may_change_kafka(path)]
        if wrong:
            shown = wrong[0].decode("utf-8", "backslashreplace")
            raise BadInputError(
                f"byte {transaction.position:,}: transaction 0x{transaction.zxid:x} does not find"
                f" {shown} as it should be: the logs do not belong to the snapshot"
            )
        if bounded:
            self._exact = self._exact and not surprising and self._has_digest(transaction)

    def _has_digest(self, transaction: Transaction) -> bool:
        """Whether the tree is the one ZooKeeper had after this transaction, where it says so."""
        if transaction.digest is None or transaction.digest[0] != DIGEST_VERSION:
            return True
        return self._known_tree().digest() == transaction.digest[1] & DIGEST_MASK

    def _look_ahead(self, transaction: Transaction) -> None:
        """Keep the state that was asked for; see whether its snapshot was fuzzy beyond it.

        A deletion that finds nothing was there before the snapshot was finished, which therefore
        lacks what it should still have. Files that say how fuzzy they are need no such proof.
        """
        tree = self._known_tree()
        if self._reached is None:
            self.finished = self._base is None or self._base.bounded
            self._reached = self._instant(), tree.nodes if self.finished else dict(tree.nodes)
        if not self.finished and any(map(may_change_kafka, tree.apply(transaction))):
            self._exact = False

    # What comes out

    def end(self) -> Iterator[Parsed]:
        """What is left to say when there are no more files."""
        if self._tree is None:
            yield self.refused("there is no good snapshot to begin with")
        elif self._asked.zxid is not None and self._asked.zxid > self._seen:
            yield self.refused(
                f"transaction 0x{self._asked.zxid:x} is not there: the newest is 0x{self._last:x}"
            )
        elif self._asked.every_change:
            if not self._told:
                yield from self._reader.read(self._tree.nodes, self._instant())
        elif self._reached is None:
            yield from self._reader.read(self._tree.nodes, self._instant())
        else:
            instant, nodes = self._reached
            exact = instant.exact and self._exact
            yield from self._reader.read(nodes, replace(instant, exact=exact))

    def refused(self, problem: str, position: str | None = None) -> Parsed:
        where = position or self._position()
        return Parsed(where, self._asked.naming.cluster, None, (problem,), None)

    def _changes(self) -> Iterator[Parsed]:
        """The clusters that are not as they were when last told of.

        A cluster counts from its first controller on: before that its znodes are still being made.
        """
        tree = self._known_tree()
        if not self._is_settled():
            return
        if not any(root + b"/controller_epoch" in tree.nodes for root in roots(tree.nodes)):
            return
        for parsed in self._reader.read(tree.nodes, self._instant()):
            place = parsed.position.partition(" below ")[2]
            said = parsed.problems if parsed.content is None else _said(parsed.content)
            if self._told.get(place) != said:
                self._told[place] = said
                yield parsed

    def _instant(self) -> Instant:
        time = self._time
        if time is None and self._base is not None:
            time = self._base.newest_time
        return Instant(
            snapshot_id=f"zxid-0x{self._last:x}",
            taken_at=None if time is None else time * 1000,
            source_form=FORM,
            position=self._position(),
            exact=self._exact and self._is_settled(),
        )

    def _position(self) -> str:
        return f"zxid 0x{self._last:x} ({', '.join(self._files)})" if self._files else "directory"

    def _is_settled(self) -> bool:
        """Whether every transaction of which something may be in the tree is wholly in it."""
        base = self._base
        return (
            base is None
            or (base.exact and self._last == base.zxid)
            or (self._last >= base.fuzzy_until)
        )

    def _known_tree(self) -> Tree:
        if self._tree is None:
            raise AssertionError("a log is only applied to a tree")
        return self._tree


def _touches_kafka(transaction: Transaction) -> bool:
    return any(
        isinstance(operation, CloseSession) or may_change_kafka(operation.path)
        for operation in transaction.operations
    )


def _said(content: Content) -> tuple[object, ...]:
    """What a snapshot says, without when."""
    _, *rest, _ = content.snapshot
    return (rest, content.brokers, content.topics, content.partitions, content.configs)
