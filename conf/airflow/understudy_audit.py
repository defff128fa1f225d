"""An Airflow 3 DAG: load new snapshots, then audit what is not audited yet.

Needs the provider apache-airflow-providers-apache-spark and a connection ``spark_default``. The
places come from the environment of Airflow; the defaults are below.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

HOME = os.environ.get("UNDERSTUDY_HOME", "/opt/understudy")
SNAPSHOTS = os.environ.get("UNDERSTUDY_SNAPSHOTS", "/var/lib/understudy/captured")
STORE = os.environ.get("UNDERSTUDY_STORE", "/var/lib/understudy/store")
OUT = os.environ.get("UNDERSTUDY_OUT", "/var/lib/understudy/audit")


def job(name: str, *arguments: str) -> SparkSubmitOperator:
    return SparkSubmitOperator(
        task_id=name,
        application=f"{HOME}/jobs/{name}.py",
        py_files=f"{HOME}/dist/understudy.zip",
        properties_file=f"{HOME}/conf/spark-defaults.conf",
        application_args=list(arguments),
    )


with DAG(
    dag_id="understudy_audit",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # two at once would do no harm, only the same work
    default_args={"retries": 1, "retry_delay": timedelta(minutes=5)},
):
    load = job("load", SNAPSHOTS, "--into", STORE)
    audit = job("audit", STORE, "--out", OUT, "--since", "24h")
    load >> audit
