"""Pages: whatever names hold, nothing breaks out; the same facts make the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report_facts import NASTY, audit, broker, found, what_if
from understudy.report import audit_page, what_if_page
from understudy.report.html import charts, page
from understudy.report.html.markup import escaped, tag

NAMES = st.one_of(st.sampled_from(NASTY), st.text(max_size=30))


class Seen(HTMLParser):
    """What a browser would see: elements, their attributes, and text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.misnested: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "input", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# --- Nothing breaks out --------------------------------------------------------------------------

Page = tuple[Callable[[dict[str, Any]], str], Callable[[str], dict[str, Any]]]
PAGES: dict[str, Page] = {
    "what-if": (what_if_page.as_html, what_if),
    "audit": (audit_page.as_html, audit),
}
every_page = pytest.mark.parametrize("page_of", PAGES.values(), ids=list(PAGES))


@every_page
@settings(deadline=None, max_examples=30)
@given(name=NAMES)
def test_names_change_the_text_of_a_page_and_nothing_else(page_of: Page, name: str) -> None:
    as_html, facts = page_of
    plain, seen = Seen(as_html(facts("orders"))), Seen(as_html(facts(name)))
    assert seen.elements == plain.elements
    assert seen.attributes == plain.attributes
    assert seen.misnested == []
    assert seen.open == []


@every_page
def test_names_are_told_as_they_are(page_of: Page) -> None:
    as_html, facts = page_of
    assert Seen(as_html(facts(NASTY[0]))).texts.count(NASTY[0]) > 5


@given(st.text())
def test_what_is_escaped_reads_the_same_but_for_what_pages_cannot_hold(text: str) -> None:
    told = "".join(Seen(tag("p", text)).texts)
    kept = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", text)
    assert told == kept.encode("utf-8", "replace").decode()


def test_attributes_hold_quotes() -> None:
    assert tag("p", title='"><b>') == '<p title="&quot;&gt;&lt;b&gt;"></p>'
    assert escaped(tag("b", "<")) == "<b>&lt;</b>"


# --- The page stands alone -----------------------------------------------------------------------


@every_page
def test_the_same_facts_make_the_same_bytes(page_of: Page) -> None:
    as_html, facts = page_of
    assert as_html(facts("orders")) == as_html(facts("orders"))


@every_page
def test_a_page_forbids_all_loading_but_its_own_style_and_script(page_of: Page) -> None:
    as_html, facts = page_of
    html = as_html(facts("orders"))
    seen = Seen(html)
    assert "default-src &#x27;none&#x27;" in html
    assert html.count("sha256-") == 2
    assert seen.attributes.isdisjoint({"src", "href", "style", "onclick"})
    assert seen.elements.count("script") == seen.elements.count("style") == 1
    assert "url(" not in html
    assert "@import" not in html


# --- What is told --------------------------------------------------------------------------------


def test_the_verdict_and_true_counts_are_told() -> None:
    told = " ".join(Seen(what_if_page.as_html(what_if())).texts)
    assert "Of 41 scenarios: 40 unsafe, 1 safe." in told
    assert "1,234 rows of topics matching orders, the first 1 shown" in told
    assert "Internal topics at risk:" in told


def test_the_snapshot_is_named_where_there_are_several() -> None:
    several = what_if("s7", snapshots=3, several=["snapshot_id"])
    told = " ".join(Seen(what_if_page.as_html(several)).texts)
    assert "Of 41 scenarios over 3 snapshots: 40 unsafe" in told
    assert "Worst is rack:s7, snapshot s7: s7." in told
    assert "snapshot scenario verdict" in told
    assert "topic partition snapshot scenario led by" in told
    assert "snapshot scenario" not in " ".join(Seen(what_if_page.as_html(what_if())).texts)


def test_the_request_storm_has_a_unit() -> None:
    told = " ".join(Seen(what_if_page.as_html(what_if())).texts)
    assert "Request storm Bytes of requests the controller sends to each broker, estimated." in told


def test_a_restart_plan_says_whether_to_act_upon_it() -> None:
    told = " ".join(Seen(what_if_page.as_html(what_if())).texts)
    assert "May they be restarted: no." in told
    assert "Any restart blocks 7 partitions of orders. The rounds hold for all other" in told
    plan = {"verdict": "yes", "notes": []}
    told = " ".join(Seen(what_if_page.as_html(what_if(plan=plan))).texts)
    assert "May they be restarted: yes." in told
    assert "The rounds hold for all other" not in told


def test_what_was_not_asked_is_left_out() -> None:
    none = found()
    empty = dict.fromkeys(("recovery", "cut_sets", "rounds", "moves", "brokers"), none)
    pairs = {**none, "brokers": 0, "ids": [], "cells": []}
    told = {**what_if(internal_topics=[], pairs=pairs), **empty}
    headings = re.findall("<h2>(.*?)</h2>", what_if_page.as_html(told))
    assert headings == ["Risks that come true", "The worst failures", "Partitions at risk"]


def test_kraft_sends_no_requests() -> None:
    html = what_if_page.as_html(what_if(brokers=found(broker(1, "a", sent=None))))
    assert "Request storm" not in html
    assert "brokers fetch metadata" in html


def test_no_scenario_makes_a_page_too() -> None:
    none = found()
    told = what_if(
        focus=None,
        worst=none,
        brokers=none,
        verdicts={"unsafe": 0},
        pairs={**none, "brokers": 0, "ids": [], "cells": []},
    )
    assert "No scenario was asked." in what_if_page.as_html(told)


def test_an_audit_tells_its_verdict_true_counts_and_history() -> None:
    html = audit_page.as_html(audit())
    assert "6 snapshots of 2 clusters judged: 2 errors, 1 warning." in html
    assert "99 findings, the first 1 shown" in html
    newest = "In the newest snapshot: 2 offline, 2 under min ISR, 2 under-replicated."
    assert newest in html
    assert "In the newest snapshot: 2 up, 2 down." in html
    assert "In the newest snapshot: 2 leaders moved, 2 of them out of sync." in html
    assert html.count("<polyline") == 10


def test_an_audit_without_findings_is_short() -> None:
    listings = ("findings", "topics", "brokers", "racks", "exposure", "divergences")
    empty = {**dict.fromkeys(listings, found()), "exposed": {}, "rules": [], "changes": []}
    told = {**audit(verdict="holds", history=[], clusters=found()), **empty}
    assert re.findall("<h2>(.*?)</h2>", audit_page.as_html(told)) == ["Findings"]


# --- Charts and tables ---------------------------------------------------------------------------


def test_bars_are_as_long_as_their_numbers() -> None:
    drawn = charts.paired_bars("x", ("before", "after"), [("1", 10, 0), ("2", 5, 20)])
    widths = [float(w) for w in re.findall(r'class="c[12]" .*?width="([\d.]+)"', drawn)]
    full = widths[3]
    assert [width / full for width in widths[:4]] == [0.5, 0.0, 0.25, 1.0]


def test_a_pair_is_drawn_once_and_the_worst_is_the_darkest() -> None:
    values = {(1, 2): (4, "one and two"), (1, 3): (0, "fine"), (2, 3): (2, "two and three")}
    drawn = charts.heat_map("x", [1, 2, 3], values)
    assert re.findall("<title>(.*?)</title>", drawn) == ["one and two", "fine", "two and three"]
    assert re.findall('fill-opacity="(.*?)"', drawn) == ["0.8", "0.46"]
    assert drawn.count('class="empty"') == 1


def test_a_schedule_fills_exactly_who_is_down() -> None:
    drawn = charts.schedule("x", [1, 2, 3], [[1, 3], [2]])
    down = re.findall('<title>(round [^<]* is down)</title><rect class="c2"', drawn)
    assert down == [
        "round 1: broker 1 is down",
        "round 2: broker 2 is down",
        "round 1: broker 3 is down",
    ]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_lines_stay_inside_their_chart(values: list[int]) -> None:
    drawn = charts.timeline("x", [str(n) for n in range(len(values))], [("offline", values)])
    points = re.search('points="(.*?)"', drawn)
    assert points is not None
    places = [tuple(map(float, each.split(","))) for each in points[1].split()]
    assert len(places) == len(values)
    assert all(0 <= x <= charts.WIDTH and 0 <= y <= 150 for x, y in places)
    assert min(y for _, y in places) == (10 if max(values) else 150)


def test_unknown_is_a_dash_and_numbers_stand_right() -> None:
    html = page.table("t", ("name", "number"), [("a", 1234), ("b", None)])
    assert '<td class="number">1,234</td>' in html
    assert '<td class="number">\N{EN DASH}</td>' in html
    assert '<td class="short">a</td>' in html
