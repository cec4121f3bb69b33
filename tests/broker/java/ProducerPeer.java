import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What Java's producers do, for comparison. ProducerPeer nameServer group topic mode, then one line of stdin an item:
 *
 * <pre>
 * sharding      a key: sent by SelectMessageQueueByHash; prints the broker and queue it went to
 * plain         a body: sent with a tag, two keys and a property; prints the id
 * transactions  "outcome checked" of COMMIT, ROLLBACK or UNKNOW each: prints status, state, and after the last line "asked n"
 *               once n transactions have been asked about (each may be asked about more than once)
 * </pre>
 */
public class ProducerPeer {
    private static final int PATIENCE_MILLIS = 30_000;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        if (args[3].equals("transactions")) {
            transactions(args, lines);
        } else {
            sends(args, lines);
        }
        System.exit(0);
    }

    private static void sends(String[] args, BufferedReader lines) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(args[1]);
        producer.setNamesrvAddr(args[0]);
        producer.setSendMsgTimeout(PATIENCE_MILLIS);
        producer.setMqClientApiTimeout(PATIENCE_MILLIS);
        producer.start();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (args[3].equals("sharding")) {
                Message message = new Message(args[2], line.getBytes(StandardCharsets.UTF_8));
                SendResult result = producer.send(message, new SelectMessageQueueByHash(), line);
                System.out.println(result.getMessageQueue().getBrokerName() + " " + result.getMessageQueue().getQueueId());
            } else {
                Message message = new Message(args[2], "TagA", "k1 k2", line.getBytes(StandardCharsets.UTF_8));
                message.putUserProperty("colour", "blue");
                System.out.println(producer.send(message).getMsgId());
            }
        }
        producer.shutdown();
    }

    private static void transactions(String[] args, BufferedReader lines) throws Exception {
        ConcurrentHashMap<String, LocalTransactionState> checked = new ConcurrentHashMap<>();
        Set<String> asked = ConcurrentHashMap.newKeySet();
        TransactionMQProducer producer = new TransactionMQProducer(args[1]);
        producer.setNamesrvAddr(args[0]);
        producer.setSendMsgTimeout(PATIENCE_MILLIS);
        producer.setMqClientApiTimeout(PATIENCE_MILLIS);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                String[] words = (String[]) argument;
                checked.put(message.getTransactionId(), LocalTransactionState.valueOf(state(words[1])));
                return LocalTransactionState.valueOf(state(words[0]));
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                asked.add(message.getTransactionId());
                return checked.get(message.getTransactionId());
            }
        });
        producer.start();
        int expected = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            expected += words[0].equals("UNKNOW") ? 1 : 0;
            Message message = new Message(args[2], "TagA", "k1", line.getBytes(StandardCharsets.UTF_8));
            TransactionSendResult result = producer.sendMessageInTransaction(message, words);
            System.out.println(result.getSendStatus() + " " + result.getLocalTransactionState());
        }
        for (int i = 0; asked.size() < expected && i < 6000; i++) {
            Thread.sleep(10);
        }
        System.out.println("asked " + asked.size());
        producer.shutdown();
    }

    private static String state(String word) {
        return word.equals("UNKNOW") ? word : word + "_MESSAGE";
    }
}
