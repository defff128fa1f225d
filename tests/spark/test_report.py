"""Pages from the tables that verbs publish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clusters import cluster, partition
from commands import told


def written(folder: Path) -> str:
    """A snapshot with a partition for each fate: it survives, it goes, it is gone."""
    parts = [partition([1, 2], (1, 3, [1, 2])), partition([3], (3, 3, [3]), number=1)]
    doc = cluster({"orders": parts, "dark": [partition([4], (4, 3, [4]))]}, live=[1, 2, 3])
    path = folder / "snapshot.json"
    path.write_text(json.dumps(doc), encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("spark")
def test_a_published_what_if_becomes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = str(tmp_path / "out"), tmp_path / "page.html"
    every = ("--every", "broker", "--every", "pair")
    asked = told(capsys, 2, "whatif", written(tmp_path), "--out", out, *every)
    answer = told(capsys, 0, "report", out, "--html", str(page))
    assert (answer["run_id"], answer["job"]) == (asked["run_id"], "whatif")
    html = page.read_text(encoding="utf-8")
    assert answer["bytes"] == len(html.encode())
    headings = re.findall("<h2>(.*?)</h2>", html)
    assert headings[1:4] == [
        "The worst failures",
        "If it happens: broker:3",
        "When two brokers fail together",
    ]
    assert "Offline now: who brings it back" in headings
    assert html.count("<title>brokers ") == 3
    missing = told(capsys, 65, "report", out, "--run-id", "none", "--html", str(page))
    assert missing["error"] == f"{out}: no run none of whatif or audit is published there"


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_verbs_write_the_page_that_report_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot, out = written(tmp_path), str(tmp_path / "out")
    pages = {name: tmp_path / f"{name}.html" for name in ("whatif", "audit", "report")}

    def same(verb: str) -> str:
        told(capsys, 0, "report", out, "--html", str(pages["report"]))
        html = pages["report"].read_text(encoding="utf-8")
        assert html == pages[verb].read_text(encoding="utf-8")
        return html

    asked = ("--every", "broker", "--html", str(pages["whatif"]))
    told(capsys, 2, "whatif", snapshot, "--out", out, *asked)
    assert "If it happens: broker:3" in same("whatif")
    told(capsys, 2, "audit", snapshot, "--out", out, "--html", str(pages["audit"]))
    newest = "In the newest snapshot: 1 offline, 0 under min ISR, 0 under-replicated."
    assert newest in same("audit")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_demo_ends_with_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    answer = told(capsys, 0, "demo", "--out", str(out))
    assert answer["whatif"]["verdict"] == "unsafe"
    assert answer["report"]["run_id"] == answer["whatif"]["run_id"]
    assert "rack:eu-1b" in (out / "report.html").read_text(encoding="utf-8")
