"""What is pruned: never the newest of a job, what an audit refers to, or what is young."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.housekeeping import HIDDEN, OLD, UNFINISHED, Doomed, Visible, began, doomed
from understudy.moments import duration, micros, moment

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)


def run(days_ago: float, tail: str = "aa") -> str:
    return f"{NOW - timedelta(days=days_ago):%Y%m%dT%H%M%S}000Z-{tail}"


def test_a_day_is_left_to_runs_that_may_be_writing() -> None:
    old, young = run(2), run(0.5)
    gone = doomed([], {}, [old, young], (), now=NOW, older_than=None)
    assert gone == [Doomed(old, UNFINISHED)]
    gone = doomed([], {}, [old, young], (), now=NOW, older_than=timedelta(0))
    assert [each.run_id for each in gone] == [old, young]


def test_visible_runs_go_by_age_only_and_the_newest_of_a_job_stays() -> None:
    runs = [run(90, "a"), run(40, "b"), run(3, "c"), run(50, "d")]
    visible = [*(Visible(each, "audit") for each in runs[:3]), Visible(runs[3], "load")]
    assert doomed(visible, {}, runs, (), now=NOW, older_than=None) == []
    gone = doomed(visible, {}, runs, (), now=NOW, older_than=timedelta(days=30))
    assert gone == [Doomed(runs[0], OLD), Doomed(runs[1], OLD)]
    kept = doomed(visible, {}, runs, {runs[0]}, now=NOW, older_than=timedelta(days=30))
    assert kept == [Doomed(runs[1], OLD)]


def test_the_files_of_a_hidden_run_stay_for_a_while() -> None:
    merged = run(60)
    just_now, long_ago = NOW - timedelta(hours=1), NOW - timedelta(days=2)
    assert doomed([], {merged: just_now}, [merged], (), now=NOW, older_than=None) == []
    gone = doomed([], {merged: long_ago}, [merged], (), now=NOW, older_than=None)
    assert gone == [Doomed(merged, HIDDEN)]


def test_what_is_not_named_like_a_run_is_left_alone() -> None:
    assert began("mine") > NOW + timedelta(days=10_000)
    assert doomed([], {}, ["mine"], (), now=NOW, older_than=timedelta(0)) == []


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from("lah")), unique_by=lambda t: t[0]),
    st.sets(st.integers(0, 99)),
    st.one_of(st.none(), st.integers(0, 99)),
)
def test_whatever_is_kept_is_kept(
    found: list[tuple[int, str]], referred: set[int], days: int | None
) -> None:
    visible = [Visible(run(age), job) for age, job in found if job != "h"]
    hidden = {run(age): NOW - timedelta(days=age) for age, job in found if job == "h"}
    older_than = None if days is None else timedelta(days=days)
    names = [run(age) for age, _ in found]
    gone = doomed(
        visible, hidden, names, {run(n) for n in referred}, now=NOW, older_than=older_than
    )
    for each in gone:
        age = next(age for age, _ in found if run(age) == each.run_id)
        assert age not in referred
        assert age >= (1 if days is None else days)
    left = {each.run_id for each in visible} - {each.run_id for each in gone}
    assert {each.job for each in visible} == {each.job for each in visible if each.run_id in left}


def test_durations_and_moments_as_people_write_them() -> None:
    assert duration("90s") == timedelta(seconds=90)
    assert duration("4w") == timedelta(weeks=4)
    assert moment("24h", NOW) == NOW - timedelta(hours=24)
    assert moment("2026-06-30T14:00:00+02:00", NOW) == NOW
    assert moment("2026-06-30T12:00:00", NOW) == NOW
    assert micros(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)) == 1_000_005
    for wrong in ("soon", "5", "1y", ""):
        with pytest.raises(UsageError):
            duration(wrong)
        with pytest.raises(UsageError):
            moment(wrong, NOW)
