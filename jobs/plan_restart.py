"""Plans a rolling restart.

The arguments are those of ``understudy plan-restart``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["plan-restart", *sys.argv[1:]]))
