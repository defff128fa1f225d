"""Running a command in the process of a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from understudy import cli


def told(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> dict[str, Any]:
    """What the command answers in JSON, after a check of its exit code."""
    capsys.readouterr()
    returned = cli.main([*argv, "--json"])
    out, err = capsys.readouterr()
    answer: dict[str, Any] = json.loads(out)
    assert returned == answer["exit_code"] == code, err or out
    return answer
