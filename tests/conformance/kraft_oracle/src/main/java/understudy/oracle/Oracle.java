package understudy.oracle;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.controller.KraftOracle;

/**
 * Reads cases, one JSON object per line, and writes what Kafka's managers did, one line each.
 *
 * <p>{@code --pace PARTITIONS} measures how fast they fence a broker instead.
 */
public final class Oracle {

  private Oracle() {}

  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (arguments.length == 2 && arguments[0].equals("--pace")) {
      out.println(KraftOracle.pace(Integer.parseInt(arguments[1])));
      out.flush();
    } else if (arguments.length == 0) {
      answerAll(out);
    } else {
      System.err.println("usage: Oracle [--pace PARTITIONS] < cases.jsonl > answers.jsonl");
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
