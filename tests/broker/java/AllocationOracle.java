import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import org.apache.commons.lang3.StringUtils;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Answers the requests of `rocketfleet allocate` with Java's own strategies: a JSON object per line in, one per line out.
 *
 * {"result": [[topic, broker, queueId], ...]} (or null, as Java's CONFIG can answer), or {"error": message, "type": class}.
 */
public class AllocationOracle {

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", plain(allocate(JSON.parseObject(line))));
            } catch (Throwable e) {
                answer.put("error", String.valueOf(e.getMessage()));
                answer.put("type", e.getClass().getSimpleName());
            }
            // Escaped to ASCII: half a surrogate pair would not survive any encoding.
            out.println(JSON.toJSONString(answer, SerializerFeature.BrowserCompatible, SerializerFeature.WriteMapNullValue));
        }
        out.flush();
    }

    private static List<MessageQueue> allocate(JSONObject request) {
        AllocateMessageQueueStrategy strategy = strategy(request.getString("strategy"), request.getJSONObject("params"));
        List<MessageQueue> queues = queues(request.getJSONArray("mqAll"));
        JSONArray ids = request.getJSONArray("cidAll");
        List<String> members = ids == null ? null : new ArrayList<>(ids.toJavaList(String.class));
        if (request.getBooleanValue("sort")) {
            if (queues != null) {
                Collections.sort(queues);
            }
            if (members != null) {
                Collections.sort(members);
            }
        }
        return strategy.allocate(request.getString("group"), request.getString("currentCID"), queues, members);
    }

    private static AllocateMessageQueueStrategy strategy(String name, JSONObject given) {
        JSONObject params = given == null ? new JSONObject() : given;
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return params.get("virtualNodeCnt") == null
                    ? new AllocateMessageQueueConsistentHash()
                    : new AllocateMessageQueueConsistentHash(params.getIntValue("virtualNodeCnt"));
            case "CONFIG": {
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(params.getJSONArray("messageQueueList")));
                return config;
            }
            case "MACHINE_ROOM": {
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                JSONArray rooms = params.getJSONArray("consumeridcs");
                room.setConsumeridcs(rooms == null ? null : new HashSet<>(rooms.toJavaList(String.class)));
                return room;
            }
            case "MACHINE_ROOM_NEARBY": {
                String inner = params.getString("inner");
                String separator = params.getString("separator");
                return new AllocateMachineRoomNearby(
                    inner == null ? null : strategy(inner, params.getJSONObject("innerParams")),
                    separator == null ? null : new RoomBefore(separator));
            }
            default:
                throw new IllegalArgumentException("no such strategy: " + name);
        }
    }

    private static class RoomBefore implements AllocateMachineRoomNearby.MachineRoomResolver {
        private final String separator;

        RoomBefore(String separator) {
            this.separator = separator;
        }

        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return StringUtils.substringBefore(queue.getBrokerName(), separator);
        }

        @Override
        public String consumerDeployIn(String member) {
            return StringUtils.substringBefore(member, separator);
        }
    }

    private static List<MessageQueue> queues(JSONArray rows) {
        if (rows == null) {
            return null;
        }
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            JSONArray row = rows.getJSONArray(i);
            queues.add(new MessageQueue(row.getString(0), row.getString(1), row.getIntValue(2)));
        }
        return queues;
    }

    private static JSONArray plain(List<MessageQueue> queues) {
        if (queues == null) {
            return null;
        }
        JSONArray rows = new JSONArray();
        for (MessageQueue queue : queues) {
            JSONArray row = new JSONArray();
            row.add(queue.getTopic());
            row.add(queue.getBrokerName());
            row.add(queue.getQueueId());
            rows.add(row);
        }
        return rows;
    }
}
