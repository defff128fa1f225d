"""``python -m understudy`` is the ``understudy`` command."""

from __future__ import annotations

import sys

from understudy.cli import main

if __name__ == "__main__":
    sys.exit(main())
