import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** A member of a group: name server, group, topic, orderly or concurrent. Prints its client id, lives until its input ends. */
public class ClientMember {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName("member" + System.nanoTime());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPersistConsumerOffsetInterval(200);
        consumer.subscribe(args[2], "*");
        if (args[3].equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        }
        consumer.start();
        System.out.println(consumer.buildMQClientId());
        while (System.in.read() >= 0) {
        }
        consumer.shutdown();
        System.exit(0);
    }
}
