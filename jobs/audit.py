"""Holds snapshots, and what happened between them, against the rules.

The arguments are those of ``understudy audit``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
