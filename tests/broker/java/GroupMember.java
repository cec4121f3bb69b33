// A Java member of a consumer group, for groups that Java and Python members share.
// Arguments: name server, group, topic, instance name, file to append its record to, handler milliseconds, orderly or not.
// Writes the same lines as the Python members do. SIGTERM shuts it down as an application would.

import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

public class GroupMember {
    private static FileOutputStream record;

    public static void main(String[] given) throws Exception {
        record = new FileOutputStream(given[4], true);
        long millis = Long.parseLong(given[5]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(given[1]);
        consumer.setNamesrvAddr(given[0]);
        consumer.setInstanceName(given[3]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAwaitTerminationMillisWhenShutdown(5000);
        consumer.subscribe(given[2], "*");
        if (Boolean.parseBoolean(given[6])) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                handle(messages, millis);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                handle(messages, millis);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.shutdown();
            note("{\"event\": \"stopped\", \"confirmed\": true");
        }));
        try {
            consumer.start();
        } catch (Exception e) {
            // The client's threads would keep a process alive that is no member, and never will be.
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        note("{\"event\": \"started\"");
        Thread.currentThread().join();
    }

    private static void handle(List<MessageExt> messages, long millis) {
        for (MessageExt message : messages) {
            String facts = "\"queue\": \"" + message.getTopic() + "@" + message.getBrokerName() + "/" + message.getQueueId()
                + "\", \"offset\": " + message.getQueueOffset()
                + ", \"id\": \"" + new String(message.getBody(), StandardCharsets.UTF_8) + "\"";
            note("{\"event\": \"begin\", " + facts);
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                return;
            }
            note("{\"event\": \"finish\", " + facts);
        }
    }

    private static void note(String open) {
        String line = open + ", \"time\": " + System.currentTimeMillis() / 1000.0 + "}\n";
        try {
            record.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }
}
