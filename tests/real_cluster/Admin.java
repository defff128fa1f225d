import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * An administrator who does what it is told: one JSON request per line comes in, one JSON answer
 * per line goes out. An answer holds the error, or null.
 */
public final class Admin {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PATIENCE_MS = 10_000;

    private Admin() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.put("error", run(JSON.readTree(line)));
            } catch (ExecutionException error) {
                answer.put("error", String.valueOf(error.getCause()));
            }
            System.out.println(answer);
        }
    }

    /** Brokers come and go, so every request finds the cluster anew. */
    private static String run(JsonNode request) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.get("brokers").asText());
        // A request that was carried out must not be sent again because the answer is slow.
        settings.put("request.timeout.ms", 120_000);
        settings.put("default.api.timeout.ms", 180_000);
        try (var admin = org.apache.kafka.clients.admin.Admin.create(settings)) {
            switch (request.get("kind").asText()) {
                case "create_topics" -> unlessLate(admin.createTopics(
                        newTopics(request.get("topics")),
                        new CreateTopicsOptions().timeoutMs(PATIENCE_MS)).all());
                case "delete_topic" -> admin.deleteTopics(List.of(request.get("topic").asText())).all().get();
                case "add_partitions" -> unlessLate(admin.createPartitions(
                        Map.of(request.get("topic").asText(), growth(request)),
                        new CreatePartitionsOptions().timeoutMs(PATIENCE_MS)).all());
                case "reassign" -> admin.alterPartitionReassignments(targets(request.get("partitions"))).all().get();
                case "preferred_election" -> elect(admin, request.get("partitions"));
                // The controller answers this one from its event queue, after all that came before.
                case "wait_for_controller" -> admin.listPartitionReassignments().reassignments().get();
                default -> throw new IllegalArgumentException(request.toString());
            }
            return null;
        }
    }

    /**
     * Kafka answers when every partition of the topic has a leader, which one whose brokers are
     * down does not get. It is created all the same.
     */
    private static void unlessLate(KafkaFuture<Void> done) throws Exception {
        try {
            done.get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TimeoutException)) {
                throw error;
            }
        }
    }

    private static NewPartitions growth(JsonNode request) {
        return NewPartitions.increaseTo(request.get("total").asInt(), lists(request.get("added")));
    }

    private static Collection<NewTopic> newTopics(JsonNode topics) {
        List<NewTopic> found = new ArrayList<>();
        for (JsonNode topic : topics) {
            Map<Integer, List<Integer>> assignment = new TreeMap<>();
            for (List<Integer> replicas : lists(topic.get("assignment"))) {
                assignment.put(assignment.size(), replicas);
            }
            Map<String, String> configs = new TreeMap<>();
            topic.get("configs").fields().forEachRemaining(
                    setting -> configs.put(setting.getKey(), setting.getValue().asText()));
            found.add(new NewTopic(topic.get("topic").asText(), assignment).configs(configs));
        }
        return found;
    }

    private static Map<TopicPartition, Optional<NewPartitionReassignment>> targets(JsonNode partitions) {
        Map<TopicPartition, Optional<NewPartitionReassignment>> found = new LinkedHashMap<>();
        partitions.fields().forEachRemaining(each -> found.put(
                partition(each.getKey()),
                Optional.of(new NewPartitionReassignment(list(each.getValue())))));
        return found;
    }

    private static void elect(org.apache.kafka.clients.admin.Admin admin, JsonNode partitions)
            throws Exception {
        Set<TopicPartition> named = new LinkedHashSet<>();
        partitions.forEach(each -> named.add(partition(each.asText())));
        // Each partition has an answer of its own, and some may have needed no election.
        admin.electLeaders(ElectionType.PREFERRED, named).partitions().get();
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    private static List<List<Integer>> lists(JsonNode values) {
        List<List<Integer>> found = new ArrayList<>();
        values.forEach(each -> found.add(list(each)));
        return found;
    }

    private static List<Integer> list(JsonNode values) {
        List<Integer> found = new ArrayList<>();
        values.forEach(each -> found.add(each.asInt()));
        return found;
    }
}
