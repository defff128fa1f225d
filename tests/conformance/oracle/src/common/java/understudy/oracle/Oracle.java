package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Reads cases, one JSON object per line, and writes what Kafka's controller did, one line each.
 *
 * <p>{@code --pace SNAPSHOT} measures Kafka's own failover instead.
 */
public final class Oracle {

  private Oracle() {}

  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (arguments.length == 2 && arguments[0].equals("--pace")) {
      out.println(Json.text(Pace.measure(Path.of(arguments[1]))));
      out.flush();
    } else if (arguments.length == 0) {
      answerAll(out);
    } else {
      System.err.println("usage: Oracle [--pace SNAPSHOT] < cases.jsonl > answers.jsonl");
      System.exit(64);
    }
    System.exit(0); // Kafka leaves threads behind that are of no use to anybody.
  }

  private static void answerAll(PrintStream out) throws IOException {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(Json.text(answer(Json.parse(line))));
      out.flush();
    }
  }

  private static ObjectNode answer(JsonNode asked) {
    JsonNode snapshot = asked.get("snapshot");
    JsonNode scenario = asked.get("scenario");
    ObjectNode answer = Json.object();
    answer.set("cluster", snapshot.get("cluster"));
    answer.set("snapshot_id", snapshot.get("snapshot_id"));
    answer.set("scenario", scenario.get("scenario"));
    answer.put("profile", Release.PROFILE).put("jar", Release.JAR);
    answer.setAll(Scenario.answer(snapshot, scenario.get("events")));
    return answer;
  }
}
