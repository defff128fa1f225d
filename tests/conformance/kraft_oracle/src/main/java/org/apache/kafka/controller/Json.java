package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;

/** JSON in and out; in documents a missing key, or null, says the default. */
final class Json {

  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  static JsonNode parse(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String text(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static boolean missing(JsonNode node) {
    return node == null || node.isNull();
  }

  // --- Reading ---

  static long number(JsonNode parent, String key, long otherwise) {
    return parent.hasNonNull(key) ? parent.get(key).longValue() : otherwise;
  }

  static boolean flag(JsonNode parent, String key) {
    return parent.hasNonNull(key) && parent.get(key).booleanValue();
  }

  static String textOrNull(JsonNode parent, String key) {
    return parent.hasNonNull(key) ? parent.get(key).textValue() : null;
  }

  static List<Integer> numbers(JsonNode array) {
    List<Integer> numbers = new ArrayList<>();
    if (!missing(array)) {
      array.forEach(number -> numbers.add(number.intValue()));
    }
    return numbers;
  }

  static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    if (!missing(array)) {
      array.forEach(text -> texts.add(text.textValue()));
    }
    return texts;
  }

  static List<Uuid> ids(JsonNode array) {
    return texts(array).stream().map(Uuid::fromString).toList();
  }

  /** The members of an object in the order they are written. */
  static Map<String, JsonNode> members(JsonNode object) {
    Map<String, JsonNode> members = new LinkedHashMap<>();
    if (!missing(object)) {
      for (Iterator<String> names = object.fieldNames(); names.hasNext(); ) {
        String name = names.next();
        members.put(name, object.get(name));
      }
    }
    return members;
  }

  // --- Writing ---

  static ArrayNode ofNumbers(Iterable<Integer> numbers) {
    ArrayNode array = array();
    numbers.forEach(array::add);
    return array;
  }

  static ArrayNode ofNumbers(int[] numbers) {
    return ofNumbers(Arrays.stream(numbers).boxed().toList());
  }

  static ArrayNode ofIds(Iterable<Uuid> ids) {
    ArrayNode array = array();
    ids.forEach(id -> array.add(id.toString()));
    return array;
  }
}
