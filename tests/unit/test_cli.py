"""The command line without Spark: words, exit codes, and how it fails."""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from understudy import bundle, cli, session
from understudy.commands import verb
from understudy.commands.verb import Verb
from understudy.errors import BadInputError, EnvironmentTooOldError
from understudy.progress import Progress
from understudy.report import tables
from understudy.sources.forms import FORMS


@pytest.mark.parametrize("verb", [verb.name for verb in cli.VERBS])
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"example:\n  understudy {verb}" in out
    assert "--json" in out
    assert "--limit" in out


def test_the_help_of_load_names_every_form_with_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["load", "--help"])
    out = capsys.readouterr().out
    for form in FORMS.values():
        assert re.search(rf"^  {form.name} +{re.escape(form.what)}$", out, re.MULTILINE)
    examples = [line.split() for line in out.splitlines() if line.startswith("  understudy load")]
    assert len(examples) > 3
    for _, *argv in examples:
        assert cli._parser().parse_args(argv).into == "store"  # noqa: SLF001


@pytest.mark.parametrize("verb", cli.VERBS, ids=lambda verb: verb.name)
def test_every_example_is_a_command_line(verb: Verb) -> None:
    _, *argv = verb.example.replace("'", "").split()
    assert cli._parser().parse_args(argv).verb == verb.name  # noqa: SLF001


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "required: VERB"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["replay"], "required: PATH, --out"),
        (["replay", "x"], "required: --out"),
        (["replay", "x", "--oot=y"], "--oot is not an option; did you mean --out?"),
        (["replay", "x", "--out", "y", "--frob"], "unrecognized arguments: --frob"),
        (["replay", "x", "--out", "y", "--limit", "-1"], "--limit"),
        (["replay", "x", "--out", "y", "--limit", "many"], "'many' is not a number"),
        (["replay", "x", "--out", "y", "--topic", "("], "not a regular expression"),
        (["replay", "x", "--out", "y", "--tables", "requests,frobs"], "writes no frobs"),
        (["load", "x", "--into", "y", "--form", "xml"], "invalid choice: 'xml'"),
        (["load", "x", "--into", "y", "--max-uncompressed", "0"], "'0' is no size"),
        (["load", "x", "--into", "y", "--max-uncompressed", "lots"], "'lots' is no size"),
        (["load", "x", "--into", "y", "--at", "noon"], "--at noon: expected zxid:0x1f or offset"),
        (["load", "x", "--into", "y", "--at", "zxid:1", "--every-change"], "give one of both"),
        (["load", "x", "--into", "y", "--form", "kcat", "--every-change"], "kcat is one instant"),
        (["load", "x", "--into", "y", "--form", "kraft", "--at", "zxid:1"], "is offset:812 or"),
        (["load", "x", "--into", "y", "--form", "json", "--cluster", "c"], "names its cluster"),
        (["load", "x", "--into", "y", "--form", "kraft", "--release", "3.9"], "says so itself"),
    ],
)
def test_usage_errors_exit_64(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 64
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_usage_errors_are_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", "x", "--json"]) == 64
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1
    assert told["exit_code"] == 64
    assert "--out" in told["error"]
    assert told["problems"] == []


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let ``understudy runs`` fail with *error*, whatever it is asked."""

    def fail(_: object) -> int:
        raise error

    verbs = tuple(replace(verb, run=fail) if verb.name == "runs" else verb for verb in cli.VERBS)
    monkeypatch.setattr(cli, "VERBS", verbs)


def test_bad_input_names_every_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, BadInputError("a.json: refused", ["line 1: no", "line 2: no"]))
    assert cli.main(["runs", "x"]) == 65
    assert capsys.readouterr().err == (
        "understudy: a.json: refused\n  - line 1: no\n  - line 2: no\n"
    )
    assert cli.main(["runs", "x", "--json"]) == 65
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "error": "a.json: refused",
        "problems": ["line 1: no", "line 2: no"],
        "exit_code": 65,
    }


def test_our_own_defects_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("UNDERSTUDY_DEBUG", raising=False)
    failing(monkeypatch, KeyError("oops\nand more"))
    assert cli.main(["runs", "x"]) == 70
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "KeyError" in err
    assert "UNDERSTUDY_DEBUG=1" in err
    monkeypatch.setenv("UNDERSTUDY_DEBUG", "1")
    assert cli.main(["runs", "x"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_not_a_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert cli.main(["runs", "x"]) == 130
    assert capsys.readouterr().err == "understudy: interrupted\n"


def test_a_machine_without_spark_is_told_so() -> None:
    hidden = "import sys; sys.modules['pyspark'] = None\n"
    code = f"{hidden}from understudy.cli import main; sys.exit(main(['runs', 'x']))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 64
    assert done.stderr.startswith("understudy: PySpark 4.3 or newer is needed")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("version", ["3.5.1", "4.2.9", "4.0.0-preview1"])
def test_an_old_spark_is_refused_in_one_sentence(version: str) -> None:
    with pytest.raises(EnvironmentTooOldError, match=f"this is Spark {version}"):
        session._check_spark(version)  # noqa: SLF001


@pytest.mark.parametrize("version", ["4.3.0", "4.10.1", "5.0.0-SNAPSHOT"])
def test_a_newer_spark_will_do(version: str) -> None:
    session._check_spark(version)  # noqa: SLF001


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("command not found", None),
    ],
)
def test_javas_own_words(banner: str, version: int | None) -> None:
    assert session.java_version(banner) == version


def test_a_java_home_without_java_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentTooOldError, match="has no bin/java"):
        session._check_java()  # noqa: SLF001


def test_tables_line_up_and_keep_to_the_width() -> None:
    rows = [(7, "a", "no ISR member is online, and unclean-election is off"), (1200, "long", None)]
    assert tables.table(("broker", "what", "why"), rows, width=80) == [
        "  broker  what  why",
        "       7  a     no ISR member is online, and unclean-election is off",
        "   1,200  long  -",
    ]
    assert tables.table(("broker", "what", "why"), rows, width=50) == [
        "  broker  what  why",
        "       7  a     no ISR member is online, and",
        "                unclean-election is off",
        "   1,200  long  -",
    ]


def test_a_last_column_without_room_stands_below_its_row() -> None:
    rows = [(7, "a", "no ISR member is online, and unclean election is off"), (1200, "long", "")]
    assert tables.table(("broker", "what", "why"), rows, width=45) == [
        "  broker  what",
        "      why",
        "       7  a",
        "      no ISR member is online, and unclean",
        "      election is off",
        "   1,200  long",
    ]


def test_only_the_longest_names_are_cut_and_how_to_see_them_is_said() -> None:
    rows = [("orders-and-invoices-of-the-shop-17", "shop-eu-2026-03-01", 7, 7)]
    lines = tables.table(("partition", "snapshot", "leader", "epoch"), rows, width=62)
    assert lines == [
        "  partition                  snapshot            leader  epoch",
        "  orders-and-i…-the-shop-17  shop-eu-2026-03-01       7      7",
        "  (… is what did not fit: --json shows it, as does a greater COLUMNS)",
    ]
    below = tables.table(("partition", "risk"), [("x" * 60, "unavailable")], width=40)
    assert below[2:4] == ["  " + "x" * 18 + "…" + "x" * 17, "      unavailable"]
    many = tables.table(("n",) * 20, [tuple(range(1000, 1020))], width=40)
    assert [line for line in many[:2] if len(line) > 40] == []
    assert many[2].startswith("  (… is what did not fit")


def test_a_list_that_is_not_whole_says_how_to_make_it_longer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = argparse.Namespace(json=False, limit=20, verb="runs")

    def shown(count: int) -> str:
        told = {"count": count, "first": range(20)}
        verb.answer(args, told, lambda facts: tables.listed(facts, "run") + "\n")
        return capsys.readouterr().out

    assert shown(20) == "20 runs\n"
    assert shown(21) == (
        "21 runs (the first 20 follow)\n\nLists end after 20: --limit N makes them longer.\n"
    )


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_people_can_read(number: int, text: str) -> None:
    assert tables.size(number) == text


def test_progress_off_a_terminal_is_a_line_per_table(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(sys.stderr, live=False, verbose=True)
    progress.doing("writing tables", tables=4)
    progress.table("requests")
    progress.tasks([(3, 10), (0, 5)])
    progress.close()
    assert capsys.readouterr().err == "writing tables\nwrote requests\n"
    assert progress.text().startswith("[######..................] writing tables 1/4, 3/15 tasks")


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ({"live": False, "verbose": False}, "understudy: many\n"),
        ({"live": False, "verbose": True, "quiet": True}, "understudy: many\n"),
        ({"live": False, "verbose": False, "quiet": True}, ""),
    ],
)
def test_a_note_is_told_unless_a_program_is_listening(mode: dict[str, bool], told: str) -> None:
    out = io.StringIO()
    progress = Progress(out, **mode)
    progress.note("many")
    progress.close()
    assert out.getvalue() == told


@pytest.mark.parametrize("quiet", [False, True])
def test_off_a_terminal_only_steps_that_take_long_are_told_of(*, quiet: bool) -> None:
    out = io.StringIO()
    progress = Progress(out, live=False, verbose=False, quiet=quiet, long_seconds=0.05)
    progress.doing("writing tables", tables=4)
    time.sleep(0.6)
    progress.close()
    told = [line for line in out.getvalue().splitlines() if "writing tables 0/4, " in line]
    assert bool(told) is not quiet
    assert len(told) <= 4  # after 0.05, 0.1, 0.2 and 0.4 seconds


def test_the_bundle_is_the_package_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = (bundle.bundle(tmp_path / name) for name in ("a/x.zip", "b/y.zip"))
    assert first.read_bytes() == second.read_bytes()
    names = ZipFile(first).namelist()
    assert "understudy/cli.py" in names
    assert names == sorted(names)
    assert not [name for name in names if "__pycache__" in name]
