"""Judges failures of brokers, racks and the like over snapshots.

The arguments are those of ``understudy whatif``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["whatif", *sys.argv[1:]]))
