"""Reading a page of metrics: which lines are ours, and what they say."""

from __future__ import annotations

from fixtures.targets.metrics import Sample, parse

PAGE = """\
# HELP kafka_server_SharePartitionMetrics_Value Attribute exposed for management
# TYPE kafka_server_SharePartitionMetrics_Value untyped
kafka_server_SharePartitionMetrics_Value{group="g",name="InFlight",partition="0",topic="a\\"b"} 3.0
kafka_server_group_coordinator_metrics_share_group_count{state="stable",} 1.0
jvm_threads_current 22.0
kafka_server_KafkaServer_BrokerState 3.0
"""


def test_samples_of_a_page() -> None:
    first, second = parse(PAGE)

    assert (first.bean, first.attribute, first.value) == ("SharePartitionMetrics", "Value", 3.0)
    assert first.labels == {"group": "g", "name": "InFlight", "partition": "0", "topic": 'a\\"b'}
    assert second == Sample(
        bean="group-coordinator-metrics",
        attribute="share_group_count",
        labels={"state": "stable"},
        value=1.0,
    )
