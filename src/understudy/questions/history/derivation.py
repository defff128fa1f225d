"""The events that lead from one snapshot to the next.

They are those the controller must have met, in the words of a scenario, so that a replay of the
earlier snapshot with them can be held against the later one. Order is not recorded; it is the one
that explains most (:class:`~understudy.questions.history.facts.Place`).
"""

from __future__ import annotations

from itertools import chain

from understudy.questions.history.brokers import broker_facts, failover_facts, setting_facts
from understudy.questions.history.facts import Event, gathered
from understudy.questions.history.interval import Interval
from understudy.questions.history.partition_facts import partition_facts, topic_facts


def derived(interval: Interval) -> list[Event]:
    facts = (failover_facts, broker_facts, setting_facts, topic_facts, partition_facts)
    return gathered(chain.from_iterable(find(interval) for find in facts))
