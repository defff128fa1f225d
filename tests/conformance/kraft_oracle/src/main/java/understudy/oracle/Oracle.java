package understudy.oracle;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.kafka.controller.KraftOracle;

/**
 * Reads cases, one JSON object per line, and writes what Kafka's managers did, one line each.
 *
 * <p>{@code --pace SNAPSHOT BROKER} measures how fast they fence brokers instead.
 */
public final class Oracle {

  private Oracle() {}

  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (arguments.length == 3 && arguments[0].equals("--pace")) {
      out.println(KraftOracle.pace(Path.of(arguments[1]), Integer.parseInt(arguments[2])));
      out.flush();
    } else if (arguments.length == 0) {
      answerAll(out);
    } else {
      System.err.println("usage: Oracle [--pace SNAPSHOT BROKER] < cases.jsonl > answers.jsonl");
      System.exit(64);
    }
  }

  private static void answerAll(PrintStream out) throws IOException {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(KraftOracle.answer(line));
      out.flush();
    }
  }
}
