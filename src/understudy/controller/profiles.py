"""Whose rules: the profiles, the releases each is for, and how each replays a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from understudy.controller.journal import Row
from understudy.controller.kraft import events as kraft
from understudy.controller.kraft import interpreter as kraft_interpreter
from understudy.controller.kraft.releases import VERIFIED_KRAFT
from understudy.controller.kraft.words import MIN_ISR_SETTING
from understudy.controller.scope import Event, Scope
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import DELETION_SETTING, UNCLEAN_SETTING
from understudy.controller.zk import events as zk
from understudy.controller.zk import interpreter
from understudy.controller.zk_legacy import events as zk_legacy
from understudy.controller.zk_legacy import interpreter as legacy_interpreter

# The settings any controller decides by; no other travels to an interpreter.
DECISIVE_SETTINGS: Final = (UNCLEAN_SETTING, DELETION_SETTING, MIN_ISR_SETTING)


@dataclass(frozen=True)
class Profile:
    name: str
    mode: str
    releases: str  # a pattern that Python and Spark read alike
    span: str
    verified: tuple[str, ...]  # releases held equal to their published jars
    replay: Callable[[SnapshotRows, Iterable[Event]], dict[str, list[Row]]]
    scope_of: Callable[[Iterable[Event]], Scope]

    def covers(self, release: str) -> bool:
        return re.search(self.releases, release) is not None

    def is_verified(self, release: str) -> bool:
        return any(release == v or release.startswith(f"{v}.") for v in self.verified)


ZK: Final = Profile(
    name="zk",
    mode="zk",
    releases=r"^(2\.[4-9]|3\.[0-9])(\.\d+)?$",
    span="2.4 to 3.9",
    verified=("2.8", "3.9"),
    replay=interpreter.replay,
    scope_of=zk.scope_of,
)
ZK_LEGACY: Final = Profile(
    name="zk-legacy",
    mode="zk",
    releases=r"^(0\.(9|10|11)(\.\d+){0,2}|1\.0(\.\d+)?)$",
    span="0.9 to 1.0",
    verified=("1.0",),
    replay=legacy_interpreter.replay,
    scope_of=zk_legacy.scope_of,
)
KRAFT: Final = Profile(
    name="kraft",
    mode="kraft",
    releases=r"^(3\.[3-9]|4\.[0-3])(\.\d+)?$",
    span="3.3 to 4.3",
    verified=VERIFIED_KRAFT,
    replay=kraft_interpreter.replay,
    scope_of=kraft.scope_of,
)
PROFILES: Final = {profile.name: profile for profile in (ZK, ZK_LEGACY, KRAFT)}
