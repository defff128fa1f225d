package understudy.oracle;

import org.slf4j.helpers.MarkerIgnoringBase;
import org.slf4j.helpers.MessageFormatter;

/** Keeps Kafka's error lines for the answer; everything below an error is not even formatted. */
public final class Log extends MarkerIgnoringBase {

  public Log(String name) {
    this.name = name;
  }

  @Override
  public boolean isErrorEnabled() {
    return true;
  }

  @Override
  public void error(String message) {
    error(message, (Throwable) null);
  }

  @Override
  public void error(String format, Object argument) {
    error(MessageFormatter.format(format, argument).getMessage());
  }

  @Override
  public void error(String format, Object first, Object second) {
    error(MessageFormatter.format(format, first, second).getMessage());
  }

  @Override
  public void error(String format, Object... arguments) {
    error(MessageFormatter.arrayFormat(format, arguments).getMessage());
  }

  @Override
  public void error(String message, Throwable thrown) {
    ErrorLines.add(message, thrown);
  }

  @Override
  public boolean isTraceEnabled() {
    return false;
  }

  @Override
  public void trace(String message) {}

  @Override
  public void trace(String format, Object argument) {}

  @Override
  public void trace(String format, Object first, Object second) {}

  @Override
  public void trace(String format, Object... arguments) {}

  @Override
  public void trace(String message, Throwable thrown) {}

  @Override
  public boolean isDebugEnabled() {
    return false;
  }

  @Override
  public void debug(String message) {}

  @Override
  public void debug(String format, Object argument) {}

  @Override
  public void debug(String format, Object first, Object second) {}

  @Override
  public void debug(String format, Object... arguments) {}

  @Override
  public void debug(String message, Throwable thrown) {}

  @Override
  public boolean isInfoEnabled() {
    return false;
  }

  @Override
  public void info(String message) {}

  @Override
  public void info(String format, Object argument) {}

  @Override
  public void info(String format, Object first, Object second) {}

  @Override
  public void info(String format, Object... arguments) {}

  @Override
  public void info(String message, Throwable thrown) {}

  @Override
  public boolean isWarnEnabled() {
    return false;
  }

  @Override
  public void warn(String message) {}

  @Override
  public void warn(String format, Object argument) {}

  @Override
  public void warn(String format, Object first, Object second) {}

  @Override
  public void warn(String format, Object... arguments) {}

  @Override
  public void warn(String message, Throwable thrown) {}
}
