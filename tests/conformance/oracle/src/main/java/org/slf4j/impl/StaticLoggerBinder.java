package org.slf4j.impl;

import org.slf4j.ILoggerFactory;
import org.slf4j.spi.LoggerFactoryBinder;
import understudy.oracle.Log;

/** The class by which SLF4J 1.7 finds its backend. */
public final class StaticLoggerBinder implements LoggerFactoryBinder {

  private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();
  private static final ILoggerFactory FACTORY = Log::new;

  private StaticLoggerBinder() {}

  public static StaticLoggerBinder getSingleton() {
    return SINGLETON;
  }

  @Override
  public ILoggerFactory getLoggerFactory() {
    return FACTORY;
  }

  @Override
  public String getLoggerFactoryClassStr() {
    return Log.class.getName();
  }
}
