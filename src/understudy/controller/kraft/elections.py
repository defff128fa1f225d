"""Who becomes leader of a partition: the quorum controller's election, and why.

The order of choice is the replica list, never the order of the ISR. An unclean election is the
last resort inside an election, not a mode of its own (PartitionChangeBuilder.electLeader).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from understudy.controller.kraft.errors import RefusedError
from understudy.controller.kraft.words import (
    ELIGIBLE_DOWN,
    FIRST_ELIGIBLE,
    LAST_KNOWN_LEADS,
    LAST_KNOWN_MAY_NOT,
    LEADER_STAYS,
    NOT_ASSIGNED,
    NOT_IN_ELR,
    PREFERRED_ELECTION,
    UNCLEAN_ELECTION,
)
from understudy.controller.records import Ids
from understudy.controller.words import (
    CHOSEN,
    FIRST_IN_SYNC,
    FIRST_ONLINE_UNCLEAN,
    NO_LEADER,
    NO_REPLICA_ONLINE,
    NOT_IN_ISR,
    NOT_TRIED,
    PREFERRED_IN_SYNC,
    UNCLEAN_OFF,
    UNKNOWN_SERVER_ERROR,
)

WhyNot: TypeAlias = Callable[[int], str | None]
"""Why a broker may not lead a partition, whoever is in sync; None when it may."""


class Elected(NamedTuple):
    leader: int
    clean: bool | None  # None when nobody leads


NOBODY = Elected(NO_LEADER, None)


@dataclass(frozen=True)
class Ballot:
    """What an election knows: the target lists, the leader until now, and who may lead."""

    kind: str
    replicas: Ids
    isr: Ids
    elr: Ids
    leader: int
    last_known: int | None  # electable when ISR and ELR are empty
    last_known_must_be_active: bool
    why_not: WhyNot

    def may_lead(self, replica: int) -> bool:
        """Kafka asks for the directory of a replica, and fails where there is no such replica."""
        verdict = self.why_not(replica)
        if verdict == NOT_ASSIGNED:
            raise RefusedError(UNKNOWN_SERVER_ERROR)
        return verdict is None

    def is_valid(self, replica: int) -> bool:
        return replica in self.eligible and self.may_lead(replica)

    @property
    def eligible(self) -> Ids:
        """The replicas a clean leader comes from: the ISR, or where that is empty the ELR."""
        return self.isr or self.elr

    @property
    def order(self) -> Ids:
        """The candidates for a clean election, in the order tried."""
        if self.kind == PREFERRED_ELECTION:
            return (*self.replicas[:1], self.leader, *self.replicas[1:])
        return (self.leader, *self.replicas)

    @property
    def last_known_leads(self) -> bool:
        if self.last_known is None or self.eligible:
            return False
        # 4.0 asks as well, and only does not heed the answer.
        may_lead = self.may_lead(self.last_known)
        return may_lead or not self.last_known_must_be_active


def elect(ballot: Ballot) -> Elected:
    for replica in ballot.order:
        if ballot.is_valid(replica):
            return Elected(replica, clean=True)
    if ballot.last_known is not None and ballot.last_known_leads:
        return Elected(ballot.last_known, clean=False)
    if ballot.kind == UNCLEAN_ELECTION:
        for replica in ballot.replicas:
            if ballot.may_lead(replica):
                return Elected(replica, clean=False)
    return NOBODY


# --- Explaining an election --------------------------------------------------------------------


def is_worth_telling(ballot: Ballot, elected: Elected) -> bool:
    """Every change tries an election; one that only keeps a good leader explains nothing."""
    return ballot.kind == PREFERRED_ELECTION or elected.leader != ballot.leader or not elected.clean


def candidates(ballot: Ballot, elected: Elected) -> tuple[tuple[int, str], ...]:
    """What became of each candidate, in the order they were tried."""
    tried = list(ballot.order)
    if ballot.last_known is not None and not ballot.eligible:
        tried.append(ballot.last_known)
    verdicts = []
    found = False
    for replica in dict.fromkeys(r for r in tried if r != NO_LEADER):
        if replica == elected.leader:
            verdict, found = CHOSEN, True
        elif found and elected.clean:
            verdict = NOT_TRIED
        else:
            verdict = ballot.why_not(replica) or (NOT_IN_ISR if ballot.isr else NOT_IN_ELR)
        verdicts.append((replica, verdict))
    return tuple(verdicts)


def reason(ballot: Ballot, elected: Elected) -> str:
    if elected.clean is None:
        return _why_nobody(ballot)
    if not elected.clean:
        return LAST_KNOWN_LEADS if ballot.last_known_leads else FIRST_ONLINE_UNCLEAN
    if not ballot.isr:
        return FIRST_ELIGIBLE
    if ballot.kind == PREFERRED_ELECTION:
        if elected.leader == ballot.replicas[0]:
            return PREFERRED_IN_SYNC
        if elected.leader == ballot.leader:
            return LEADER_STAYS
    return FIRST_IN_SYNC


def _why_nobody(ballot: Ballot) -> str:
    if all(ballot.why_not(replica) is not None for replica in ballot.replicas):
        return NO_REPLICA_ONLINE
    if ballot.isr:
        return UNCLEAN_OFF
    if ballot.elr:
        return ELIGIBLE_DOWN
    return UNCLEAN_OFF if ballot.last_known is None else LAST_KNOWN_MAY_NOT
