package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;

/** The way into this package: a case as text in, Kafka's answer as text out. */
public final class KraftOracle {

  private KraftOracle() {}

  public static String answer(String asked) {
    JsonNode document = Json.parse(asked);
    JsonNode snapshot = document.get("snapshot");
    JsonNode scenario = document.get("scenario");
    ObjectNode answer = Json.object();
    answer.set("cluster", snapshot.get("cluster"));
    answer.set("snapshot_id", snapshot.get("snapshot_id"));
    answer.set("scenario", scenario.get("scenario"));
    answer.put("profile", "kraft").put("jar", Release.INSTANCE.jar());
    answer.setAll(Scenario.answer(snapshot, scenario.get("events")));
    return Json.text(answer);
  }

  public static String pace(Path snapshot, int fenced) {
    return Json.text(Pace.measure(snapshot, fenced));
  }
}
