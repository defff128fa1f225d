"""Pages in a real Chromium: their own script runs, and nothing else does or is asked for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from report_facts import NASTY, audit, what_if
from understudy.report import audit_page, what_if_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here"),
]


def opened(path: Path) -> tuple[str, str]:
    """The document once its script has run, and what the browser complained of."""
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
    done = subprocess.run(
        [str(CHROMIUM), *options, f"--user-data-dir={path.parent}", "--dump-dom", path.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        timeout=180,
    )
    # Refused loads and errors of scripts alike are told on the console.
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize(
    ("as_html", "facts"), [(what_if_page.as_html, what_if), (audit_page.as_html, audit)]
)
def test_a_page_runs_its_own_script_alone(
    tmp_path: Path, as_html: Callable[[dict[str, Any]], str], facts: Callable[[str], dict[str, Any]]
) -> None:
    page = tmp_path / "report.html"
    page.write_text(as_html(facts("".join(NASTY[:-1]))), encoding="utf-8")
    document, complaints = opened(page)
    assert complaints == ""
    assert '<button type="button">' in document
    assert "<img" not in document


def test_a_script_that_slipped_in_would_be_refused(tmp_path: Path) -> None:
    html = what_if_page.as_html(what_if())
    smuggled = "<script>document.title = 'run'</script><img src='http://127.0.0.1:9/x.png'></main>"
    page = tmp_path / "report.html"
    page.write_text(html.replace("</main>", smuggled), encoding="utf-8")
    document, complaints = opened(page)
    assert "<title>What if brokers fail?</title>" in document
    assert complaints.count("Content Security Policy") == 2
