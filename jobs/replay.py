"""Replays scenarios over snapshots and writes what the controller decides.

The arguments are those of ``understudy replay``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["replay", *sys.argv[1:]]))
