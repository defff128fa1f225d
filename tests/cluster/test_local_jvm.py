"""The JVM that a plain ``understudy`` starts for itself, when it does not last."""

from __future__ import annotations

import json
import subprocess
import sys

from new_shell import environment

# More than the heap of a plain command, whatever verb needs it.
_GREEDY = """
import sys
from dataclasses import replace
from understudy import cli
from understudy.commands import runs
from understudy.commands.verb import running

def run(args):
    with running("greedy", args) as (spark, _):
        return spark.sql("SELECT length(repeat('x', 2000000000))").first()[0]

cli.VERBS = (replace(runs.VERB, run=run),)
sys.exit(cli.main(["runs", "nowhere", "--json"]))
"""


def test_a_jvm_out_of_memory_ends_and_the_command_says_so() -> None:
    shell = environment(PYSPARK_SUBMIT_ARGS="--driver-memory 512m pyspark-shell")
    done = subprocess.run(
        [sys.executable, "-c", _GREEDY],
        env=shell,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 70, done.stderr
    told = json.loads(done.stdout)  # the JVM's own last words do not stand in it
    assert "give it more" in told["error"]
    assert "OutOfMemoryError" in done.stderr
    assert "Traceback" not in done.stderr
