"""Tells the story of one partition.

The arguments are those of ``understudy explain``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["explain", *sys.argv[1:]]))
