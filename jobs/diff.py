"""Says what is different between two snapshots.

The arguments are those of ``understudy diff``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["diff", *sys.argv[1:]]))
