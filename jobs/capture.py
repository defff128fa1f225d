"""Asks a running cluster for its state and puts that into a snapshot store.

The arguments are those of ``understudy capture``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["capture", *sys.argv[1:]]))
