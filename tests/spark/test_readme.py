"""What the README tells people to type works, in that order, from where they are told to be."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from understudy import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERED = {0, 2, 3, 4}  # anything but a mistake of somebody's

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


def commands() -> list[list[str]]:
    lines = re.findall(r"^\.venv/bin/understudy (.*?)$", README, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    found = commands()
    assert {argv[0] for argv in found} >= {"replay", "runs", "whatif", "audit", "explain", "diff"}
    codes = {shlex.join(argv): cli.main(argv) for argv in found}
    said = capsys.readouterr()
    assert set(codes.values()) <= ANSWERED, (codes, said.err[-3000:])
    assert "Traceback" not in said.err
    typed: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE):
        exec(block, typed)  # noqa: S102  # what people are told to type, after those commands
    assert "unclean_allowed_by" in capsys.readouterr().out
