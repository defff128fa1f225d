"""Loads snapshots, in whatever form there are any, into a snapshot store.

The arguments are those of ``understudy load``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["load", *sys.argv[1:]]))
