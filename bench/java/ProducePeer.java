import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Java's side of bench/produce.py. Stays alive between repetitions, so that its code is compiled and its connections are up
 * when it is measured. Reads lines "threads batchSize messages" and answers each with the seconds that it took.
 */
public class ProducePeer {
    /** As on our side: a busy machine must not turn a measurement into an error. */
    private static final int TIMEOUT_MILLIS = 30_000;

    public static void main(String[] args) {
        try {
            serve(args);
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void serve(String[] args) throws Exception {
        String topic = args[1];
        byte[] body = new byte[Integer.parseInt(args[2])];
        Arrays.fill(body, (byte) 'x');
        DefaultMQProducer producer = new DefaultMQProducer("bench-java");
        producer.setNamesrvAddr(args[0]);
        producer.setSendMsgTimeout(TIMEOUT_MILLIS);
        producer.setMqClientApiTimeout(TIMEOUT_MILLIS);
        producer.start();
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            int threads = Integer.parseInt(words[0]);
            int batch = Integer.parseInt(words[1]);
            int sends = Integer.parseInt(words[2]) / batch;
            System.out.println(run(producer, topic, body, threads, batch, sends));
        }
        producer.shutdown();
    }

    private static double run(DefaultMQProducer producer, String topic, byte[] body, int threads, int batch, int sends)
        throws Exception {
        AtomicInteger left = new AtomicInteger(sends);
        AtomicInteger failed = new AtomicInteger();
        List<Thread> workers = new ArrayList<>();
        long start = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            Thread worker = new Thread(() -> {
                while (left.getAndDecrement() > 0) {
                    try {
                        SendResult result;
                        if (batch == 1) {
                            result = producer.send(new Message(topic, body));
                        } else {
                            List<Message> messages = new ArrayList<>(batch);
                            for (int n = 0; n < batch; n++) {
                                messages.add(new Message(topic, body));
                            }
                            result = producer.send(messages);
                        }
                        if (result.getSendStatus() != SendStatus.SEND_OK) {
                            failed.incrementAndGet();
                        }
                    } catch (Exception error) {
                        error.printStackTrace();
                        failed.incrementAndGet();
                    }
                }
            });
            workers.add(worker);
            worker.start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        if (failed.get() > 0) {
            throw new IllegalStateException(failed.get() + " sends failed");
        }
        return (System.nanoTime() - start) / 1e9;
    }
}
