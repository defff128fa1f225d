"""Replays scenarios under several controllers and publishes where they part.

The arguments are those of ``understudy compare``; everything else comes from spark-submit.
"""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
