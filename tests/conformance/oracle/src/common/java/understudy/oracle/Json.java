package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/** JSON in and out, for documents, answers and znodes alike. */
final class Json {

  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  static ArrayNode array(Iterable<Integer> numbers) {
    ArrayNode array = MAPPER.createArrayNode();
    numbers.forEach(array::add);
    return array;
  }

  static JsonNode parse(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static JsonNode parse(byte[] text) {
    try {
      return MAPPER.readTree(text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] bytes(JsonNode node) {
    try {
      return MAPPER.writeValueAsBytes(node);
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

  /** The numbers of a list; none when it is missing or null. */
  static List<Integer> numbers(JsonNode array) {
    List<Integer> numbers = new ArrayList<>();
    if (array != null) {
      array.forEach(number -> numbers.add(number.intValue()));
    }
    return numbers;
  }

  static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    if (array != null) {
      array.forEach(text -> texts.add(text.textValue()));
    }
    return texts;
  }

  static boolean missing(JsonNode node) {
    return node == null || node.isNull();
  }
}
