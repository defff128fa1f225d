"""The ledger: whatever comes when, in the end everything is judged as if it had come at once."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.questions.audit.ledger import Entry, Key, Seen, histories
from understudy.questions.audit.rule import LOOKBACK

SECOND = 1_000_000
MINUTE = 60 * SECOND


def seen(
    name: str, at: int | None, *, cluster: str = "c", complete: bool = True, content: str = ""
) -> Seen:
    return Seen(cluster, name, at, 1, complete, content or f"digest of {name}")


def audit(
    stored: list[Seen],
    before: list[Entry],
    run: str,
    *,
    since: int | None = None,
    until: int | None = None,
) -> list[Entry]:
    """The ledger after one more run."""
    after = {entry.seen.key: entry for entry in before}
    for history in histories(stored, before, since=since, until=until):
        touched = {entry.seen.key for entry in history.kept}
        touched |= {each.key for each in history.asked}
        assert touched >= {key for key in after if key[0] == history.cluster}
        for each in history.asked:
            after[each.key] = Entry(each, history.previous[each.snapshot_id], run)
    return list(after.values())


def by_hand(stored: list[Seen]) -> dict[Key, tuple[str, ...]]:
    """What each snapshot has to be judged with, by looking for it."""
    found: dict[Key, tuple[str, ...]] = {}
    for each in stored:
        of_it = [other for other in stored if other.cluster == each.cluster and other.complete]
        of_it.sort(key=lambda other: other.order)
        if not each.complete:
            found[each.key] = ()
            continue
        at = first = last = of_it.index(each)
        while first > 0 and is_close(of_it[first - 1], of_it[first]):
            first -= 1
        while last + 1 < len(of_it) and is_close(of_it[last], of_it[last + 1]):
            last += 1
        begin = max(0, min(at - LOOKBACK, first - 1)) if first < last else max(0, at - LOOKBACK)
        before = [other.digest for other in reversed(of_it[begin:at])]
        rest = [*before[LOOKBACK:], *(other.digest for other in of_it[at + 1 : last + 1])]
        one = [sha256(" ".join(rest).encode()).hexdigest()] if rest else []
        found[each.key] = (*before[:LOOKBACK], *one)
    return found


def is_close(before: Seen, after: Seen) -> bool:
    return (after.taken_at or 0) - (before.taken_at or 0) < 2 * SECOND


SNAPSHOTS = st.builds(
    lambda cluster, n, at, complete: seen(f"s{n}", at * SECOND, cluster=cluster, complete=complete),
    st.sampled_from(["a", "b"]),
    st.integers(0, 9),
    st.integers(0, 12),
    st.sampled_from([True, True, True, False]),
)


@settings(deadline=None)
@given(st.lists(SNAPSHOTS, unique_by=lambda each: each.key), st.randoms(use_true_random=False))
def test_batches_in_any_order_come_to_the_same_as_all_at_once(
    stored: list[Seen], dice: Random
) -> None:
    shuffled = dice.sample(stored, len(stored))
    ledger: list[Entry] = []
    run = 0
    while len(shuffled) > 0 or run == 0:
        arrived = dice.randint(0, len(shuffled))
        here = [each for each in stored if each not in shuffled[arrived:]]
        ledger = audit(here, ledger, f"run {run}")
        assert {entry.seen.key: entry.previous for entry in ledger} == by_hand(here)
        assert histories(here, ledger) == []
        shuffled = shuffled[arrived:]
        run += 1


@settings(deadline=None)
@given(st.lists(SNAPSHOTS, unique_by=lambda each: each.key), st.integers(0, 12))
def test_two_spans_come_to_the_same_as_all_at_once(stored: list[Seen], middle: int) -> None:
    ledger = audit(stored, [], "late", since=middle)
    ledger = audit(stored, ledger, "early", until=middle)
    assert {entry.seen.key: entry.previous for entry in ledger} == by_hand(stored)
    taken = {entry.seen.key: entry.run for entry in ledger}
    for each in stored:
        assert each.taken_at is not None
        assert taken[each.key] == ("late" if each.taken_at >= middle else "early")


def test_one_more_snapshot_is_all_that_is_judged() -> None:
    stored = [seen(f"s{n}", n * MINUTE) for n in range(10)]
    ledger = audit(stored[:9], [], "first")
    (history,) = histories(stored, ledger)
    assert [each.snapshot_id for each in history.asked] == ["s9"]
    assert [each.snapshot_id for each in history.needed] == ["s8", "s7"]
    assert history.is_continued
    assert len(history.judged) == 10


def test_a_late_one_has_its_successors_judged_again() -> None:
    stored = [seen(f"s{n}", n * MINUTE) for n in range(8)]
    ledger = audit([each for each in stored if each.snapshot_id != "s3"], [], "first")
    (history,) = histories(stored, ledger)
    assert [each.snapshot_id for each in history.asked] == ["s3", "s4", "s5"]
    assert not history.is_continued


def test_other_content_is_judged_again_with_all_that_look_back_at_it() -> None:
    stored = [seen(f"s{n}", n * MINUTE) for n in range(6)]
    ledger = audit(stored, [], "first")
    changed = [
        seen("s1", MINUTE, content="other") if n == 1 else each for n, each in enumerate(stored)
    ]
    (history,) = histories(changed, ledger)
    assert [each.snapshot_id for each in history.asked] == ["s1", "s2", "s3"]


def test_what_a_store_lost_stays_judged() -> None:
    stored = [seen(f"s{n}", n * MINUTE) for n in range(6)]
    ledger = audit(stored, [], "first")
    (history,) = histories([*stored[4:], seen("s6", 6 * MINUTE)], ledger)
    assert [each.snapshot_id for each in history.asked] == ["s6"]
    assert len(history.judged) == 7


def test_those_of_a_burst_are_judged_together() -> None:
    """Who comes a second after another changes what both of them tell; KRaft knows no bursts."""
    stored = [seen(f"s{n}", n * MINUTE) for n in range(5)]
    ledger = audit(stored, [], "first")
    (history,) = histories([*stored, seen("s5", 4 * MINUTE + SECOND)], ledger)
    assert [each.snapshot_id for each in history.asked] == ["s4", "s5"]
    assert [each.snapshot_id for each in history.needed] == ["s3", "s2"]
    assert history.bursts == {"s0": 0, "s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 4}
    at_once = [replace(seen(f"k{n}", 0), mode="kraft") for n in (10, 9)]
    (history,) = histories(at_once, [])
    assert history.bursts == {"k9": 0, "k10": 1}
    assert history.previous == {"k9": (), "k10": ("digest of k9",)}


def test_an_incomplete_one_is_judged_alone_and_passed_over() -> None:
    stored = [seen("s0", 0), seen("s1", MINUTE, complete=False), seen("s2", 2 * MINUTE)]
    (history,) = histories(stored, [])
    assert history.previous == {"s0": (), "s1": (), "s2": ("digest of s0",)}


def test_judged_again_is_what_is_asked_for_and_the_rest_is_kept() -> None:
    stored = [seen(f"s{n}", n * MINUTE) for n in range(6)]
    ledger = audit(stored, [], "first")
    (history,) = histories(stored, ledger, since=4 * MINUTE, again=True)
    assert [each.snapshot_id for each in history.asked] == ["s4", "s5"]
    assert [entry.seen.snapshot_id for entry in history.kept] == ["s0", "s1", "s2", "s3"]
    assert not history.is_continued  # what was known of them is no longer known


def test_without_a_time_it_is_in_every_span() -> None:
    (history,) = histories([seen("s0", None), seen("s1", 1)], [], since=2)
    assert [each.snapshot_id for each in history.asked] == ["s0"]
