package understudy.oracle;

import java.util.ArrayList;
import java.util.List;

/** Kafka's error lines since somebody last asked for them. */
final class ErrorLines {

  /** An error line and what was thrown, if anything was. */
  record Line(String message, Throwable thrown) {
    @Override
    public String toString() {
      return thrown == null
          ? message
          : message + " <- " + thrown.getClass().getSimpleName() + ": " + thrown.getMessage();
    }
  }

  private static final List<Line> LINES = new ArrayList<>();

  private ErrorLines() {}

  static void add(String message, Throwable thrown) {
    synchronized (LINES) {
      LINES.add(new Line(message, thrown));
    }
  }

  /** How many there are now. */
  static int count() {
    synchronized (LINES) {
      return LINES.size();
    }
  }

  /** Those after the first so many, which stay. */
  static List<Line> since(int count) {
    synchronized (LINES) {
      return List.copyOf(LINES.subList(count, LINES.size()));
    }
  }

  static List<Line> take() {
    synchronized (LINES) {
      List<Line> taken = List.copyOf(LINES);
      LINES.clear();
      return taken;
    }
  }
}
