"""The textfile of an audit: Kafka's names, by topic, escaped."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Row

from understudy.report.prometheus import render

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_metrics_are_told_by_topic_and_zero_by_cluster() -> None:
    newest = [
        Row(cluster="a", snapshot_id="s1", seconds=7, brokers_up=3),
        Row(cluster='b"\\', snapshot_id="s2", seconds=None, brokers_up=None),
    ]
    found = [
        Row(cluster="a", topic="orders", rule="offline", severity="error", count=2),
        Row(cluster="a", topic="users", rule="offline", severity="error", count=1),
        Row(cluster="a", topic=None, rule="leader-skew", severity="warning", count=1),
    ]
    lines = render(newest, found, NOW).splitlines()
    assert [line for line in lines if line.startswith("kafka_offline_partitions")] == [
        'kafka_offline_partitions{cluster="a",topic="orders"} 2',
        'kafka_offline_partitions{cluster="a",topic="users"} 1',
        'kafka_offline_partitions{cluster="b\\"\\\\"} 0',
    ]
    assert 'kafka_brokers_up{cluster="a"} 3' in lines
    assert 'kafka_audit_findings{cluster="a",rule="leader-skew",severity="warning"} 1' in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == 8
