package understudy.oracle;

import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.spi.LoggingEvent;

/** Keeps Kafka's error lines for the answer; everything below an error is not even formatted. */
final class Log extends AppenderSkeleton {

  private static boolean listening;

  private Log() {}

  static synchronized void listen() {
    if (!listening) {
      Logger.getRootLogger().setLevel(Level.ERROR);
      Logger.getRootLogger().addAppender(new Log());
      listening = true;
    }
  }

  @Override
  protected void append(LoggingEvent event) {
    boolean thrown = event.getThrowableInformation() != null;
    ErrorLines.add(
        event.getRenderedMessage(), thrown ? event.getThrowableInformation().getThrowable() : null);
  }

  @Override
  public void close() {}

  @Override
  public boolean requiresLayout() {
    return false;
  }
}
