"""Finds the minimal sets of brokers whose loss costs partitions.

The arguments are those of ``understudy cutsets``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["cutsets", *sys.argv[1:]]))
