"""What a rule is: a name, a condition and its evidence as column expressions, and why it matters.

The expressions are SQL text over the columns of :mod:`understudy.questions.audit.facts`; ``{name}``
stands for a parameter of the rule. A condition that is null does not hold: nothing is found where
something is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"
UNDECIDED: Final = "undecided"
SEVERITIES: Final = (ERROR, WARNING, INFO)
"""What a rule set may give a rule; an undecided one is no verdict and cannot be tuned into one."""

Subject = Literal["partition", "change", "broker", "snapshot"]
SUBJECTS: Final[tuple[Subject, ...]] = ("partition", "change", "broker", "snapshot")
Parameter = int | float

LOOKBACK: Final = 2
"""How many complete snapshots before it, at most, a snapshot is judged with."""

_JIRA: Final = "https://issues.apache.org/jira/browse/KAFKA-"
_KIP: Final = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-"
_GITHUB: Final = "https://github.com/"


def jira(number: int) -> str:
    return f"{_JIRA}{number}"


def kip(page: str) -> str:
    return f"{_KIP}{page}"


def github(page: str) -> str:
    return f"{_GITHUB}{page}"


@dataclass(frozen=True)
class Rule:
    """One rule; as data, so that it can be listed, tuned and documented."""

    name: str
    severity: str
    subject: Subject
    says: str
    link: str
    when: str
    evidence: str
    broker: str = "CAST(NULL AS INT)"
    lookback: int = 0
    """How many snapshots back it looks; a rule that looks back needs them complete."""
    on_incomplete: bool = False
    """Whether it can be judged where brokers or settings may be missing."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def condition(self) -> str:
        """Never null."""
        guard = "true" if self.on_incomplete else "complete"
        return f"coalesce({guard} AND ({self._filled(self.when)}), false)"

    def told(self) -> str:
        return self._filled(self.evidence)

    def _filled(self, expression: str) -> str:
        for name, value in self.parameters.items():
            expression = expression.replace(f"{{{name}}}", str(value))
        return expression


def ids(expression: str) -> str:
    """A list of broker ids as people write it."""
    return f"concat('[', array_join({expression}, ','), ']')"


def sentence(template: str, *values: str) -> str:
    """*template* with each ``%s`` in turn replaced by an expression; unknown is ``?``."""
    parts = template.split("%s")
    said = [f"'{parts[0]}'"]
    for value, after in zip(values, parts[1:], strict=True):
        said += [f"coalesce(CAST({value} AS STRING), '?')", f"'{after}'"]
    return f"concat({', '.join(part for part in said if part != _NOTHING)})"


_NOTHING: Final = "''"
