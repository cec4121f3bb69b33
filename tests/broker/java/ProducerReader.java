import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A Java consumer of what our producer sent: nameServer group topic expression count. Prints one line per message, fields
 * separated by tabs: id, queue id, tags, keys, transaction id, body's length, body's SHA-256, properties as name=value;…
 */
public class ProducerReader {
    public static void main(String[] args) throws Exception {
        CountDownLatch left = new CountDownLatch(Integer.parseInt(args[4]));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[2], args[3]);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                print(message);
                left.countDown();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        boolean all = left.await(60, TimeUnit.SECONDS);
        consumer.shutdown();
        if (!all) {
            System.err.println(left.getCount() + " messages did not arrive");
        }
        System.exit(all ? 0 : 1);
    }

    private static synchronized void print(MessageExt message) {
        try {
            StringBuilder properties = new StringBuilder();
            for (Map.Entry<String, String> entry : new TreeMap<>(message.getProperties()).entrySet()) {
                properties.append(entry.getKey()).append('=').append(entry.getValue()).append(';');
            }
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(message.getBody());
            String line = String.join("\t", message.getMsgId(), String.valueOf(message.getQueueId()), message.getTags(),
                message.getKeys(), message.getTransactionId(), String.valueOf(message.getBody().length),
                HexFormat.of().formatHex(digest), properties);
            System.out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
