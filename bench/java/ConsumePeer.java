// Java's push consumer with a handler that only counts: the peer of bench/consume.py.
// Arguments: name server, group, topic, how many messages, orderly or not. Prints one line of JSON.

import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

public class ConsumePeer {
    private static final AtomicLong handled = new AtomicLong();
    private static final CountDownLatch done = new CountDownLatch(1);
    private static volatile long firstAt;
    private static volatile long firstCpu;
    private static long target;

    public static void main(String[] given) throws Exception {
        target = Long.parseLong(given[3]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(given[1]);
        consumer.setNamesrvAddr(given[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(given[2], "*");
        if (Boolean.parseBoolean(given[4])) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                count(messages.size());
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                count(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        done.await();
        double seconds = (System.nanoTime() - firstAt) / 1e9;
        double cpu = (cpuNanos() - firstCpu) / 1e9;
        System.out.printf("{\"messages\": %d, \"seconds\": %.4f, \"cpu\": %.4f}%n", handled.get(), seconds, cpu);
        System.out.flush();
        consumer.shutdown();
        System.exit(0);
    }

    private static void count(int messages) {
        long now = handled.addAndGet(messages);
        if (now == messages) {
            firstCpu = cpuNanos();
            firstAt = System.nanoTime();
        }
        if (now >= target) {
            done.countDown();
        }
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
