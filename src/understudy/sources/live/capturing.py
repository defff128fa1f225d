"""One capture of one cluster, through its brokers or its ZooKeeper, in bounded time."""

from __future__ import annotations

from datetime import datetime

from understudy.errors import BadInputError, UnderstudyError
from understudy.sources.content import Parsed
from understudy.sources.live import brokers, security, znodes
from understudy.sources.live.properties import Properties
from understudy.sources.live.waiting import explained, listening, within
from understudy.sources.zookeeper.kafka import Naming


def capture(
    *,
    bootstrap: str | None,
    zookeeper: str | None,
    command_config: str | None,
    naming: tuple[str | None, str | None, str | None],
    form: str,
    now: datetime,
    seconds: float,
) -> Parsed:
    """The snapshot of the cluster at *bootstrap* or *zookeeper*; *naming* is what they lack.

    Raises BadInputError if nobody answers in time, or not as it has to be.
    """
    properties = Properties.of_file(command_config)
    cluster, release, metadata_version = naming
    snapshot_id = f"{form}-{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z"
    whom = bootstrap or zookeeper or ""
    if bootstrap is not None:
        settings = security.of_kafka(properties)

        def work() -> Parsed:
            return brokers.read(
                [each.strip() for each in bootstrap.split(",")],
                settings,
                form=form,
                cluster=cluster,
                release=release,
                metadata_version=metadata_version,
                snapshot_id=snapshot_id,
                seconds=seconds,
            )

    else:
        access = security.of_zookeeper(properties)

        def work() -> Parsed:
            return znodes.read(
                whom,
                access,
                Naming(cluster, release, metadata_version),
                form=form,
                snapshot_id=snapshot_id,
                taken_at=int(now.timestamp() * 1_000_000),
                seconds=seconds,
            )

    with listening(servers=whom.count(",") + 1) as listener:
        try:
            parsed = within(seconds, whom, work, listener)
        except UnderstudyError:
            raise
        except Exception as error:
            raise _failure(whom, error, listener.last, seconds) from error
    if parsed.problems:
        raise BadInputError(f"{whom}, {parsed.position}", parsed.problems)
    return parsed


def _failure(
    whom: str, error: Exception, logged: BaseException | None, seconds: float
) -> BadInputError:
    """A client's error in a sentence; one of another kind is a defect and stays as it is."""
    from kafka.errors import KafkaError, KafkaTimeoutError  # noqa: PLC0415 - an extra
    from kazoo.exceptions import KazooException  # noqa: PLC0415
    from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415

    if isinstance(error, KafkaTimeoutError | KazooTimeoutError):
        why = f" ({explained(logged)})" if logged else ""
        return BadInputError(f"{whom}: no answer within {seconds:g} seconds{why}")
    if isinstance(error, KafkaError | KazooException | OSError):
        return BadInputError(f"{whom}: {explained(error)}")
    raise error
