// A Java consumer as a user would write one, for engine Container. All it needs is in its environment: NAME_SERVER, GROUP,
// TOPIC, ORDERLY, HANDLER_SECONDS, and SCENE and RECORDER, where it writes the same lines as the Python handler.

import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

public class Member {
    private static final long MILLIS = Math.round(1000 * Double.parseDouble(env("HANDLER_SECONDS", "0.02")));
    private static final ThreadLocal<Socket> CONNECTION = new ThreadLocal<>();

    public static void main(String[] given) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(env("GROUP", null));
        consumer.setNamesrvAddr(env("NAME_SERVER", null));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAwaitTerminationMillisWhenShutdown(5000);
        consumer.subscribe(env("TOPIC", null), "*");
        if (Boolean.parseBoolean(env("ORDERLY", "false"))) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                handle(messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                handle(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        Runtime.getRuntime().addShutdownHook(new Thread(consumer::shutdown));
        try {
            consumer.start();
        } catch (Exception e) {
            // The client's threads would keep a process alive that is no member, and never will be.
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        Thread.currentThread().join();
    }

    private static void handle(List<MessageExt> messages) {
        for (MessageExt message : messages) {
            String facts = "\"pod\": \"" + env("POD_NAME", "?") + "\", \"queue\": \"" + message.getTopic() + "@"
                + message.getBrokerName() + "/" + message.getQueueId() + "\", \"offset\": " + message.getQueueOffset()
                + ", \"id\": \"" + new String(message.getBody(), StandardCharsets.UTF_8) + "\"}";
            note("{\"event\": \"begin\", " + facts);
            try {
                Thread.sleep(MILLIS);
            } catch (InterruptedException e) {
                throw new RuntimeException(e); // not finished, so not a success
            }
            note("{\"event\": \"finish\", " + facts);
        }
    }

    private static void note(String record) {
        try {
            Socket socket = CONNECTION.get();
            if (socket == null) {
                String[] address = env("RECORDER", null).split(":");
                socket = new Socket(address[0], Integer.parseInt(address[1]));
                CONNECTION.set(socket);
            }
            socket.getOutputStream().write((env("SCENE", null) + " " + record + "\n").getBytes(StandardCharsets.UTF_8));
            if (socket.getInputStream().read() != '\n') {
                throw new IOException("the recorder hung up");
            }
        } catch (IOException e) {
            CONNECTION.remove();
            throw new RuntimeException(e);
        }
    }

    private static String env(String name, String otherwise) {
        String value = System.getenv(name);
        if (value == null && otherwise == null) {
            throw new IllegalStateException(name + " is not set");
        }
        return value == null ? otherwise : value;
    }
}
