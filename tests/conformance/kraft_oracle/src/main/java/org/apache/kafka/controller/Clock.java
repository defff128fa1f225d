package org.apache.kafka.controller;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** Stands still until it is told that time has passed. */
final class Clock implements Time {

  private long nanoseconds = 1_000_000_000L;

  @Override
  public long milliseconds() {
    return nanoseconds / 1_000_000;
  }

  @Override
  public long nanoseconds() {
    return nanoseconds;
  }

  @Override
  public void sleep(long milliseconds) {
    nanoseconds += milliseconds * 1_000_000;
  }

  @Override
  public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {}
}
