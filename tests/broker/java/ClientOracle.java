import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.attribute.AttributeParser;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.body.AclInfo;
import org.apache.rocketmq.remoting.protocol.body.ClusterInfo;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.QueueTimeSpan;
import org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.UserInfo;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.UpdateConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What mqadmin is made of, kept alive: one line of JSON in (an array of strings, a command and its arguments), one line of JSON out.
 * Running mqadmin itself costs seconds per command, and its output is for people.
 */
public class ClientOracle {
    private static final long TIMEOUT = 5000;
    private static DefaultMQAdminExt admin;
    private static MQClientAPIImpl api;
    private static String nameServer;
    private static RPCHook hook;
    private static final Map<String, DefaultMQProducer> PRODUCERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        nameServer = args[0];
        hook = args.length > 2 ? new AclClientRPCHook(new SessionCredentials(args[1], args[2])) : null;
        admin = new DefaultMQAdminExt(hook, TIMEOUT);
        admin.setNamesrvAddr(nameServer);
        admin.setInstanceName("oracle" + System.nanoTime());
        admin.start();
        api = admin.getDefaultMQAdminExtImpl().getMqClientInstance().getMQClientAPIImpl();
        out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new TreeMap<>();
            try {
                answer.put("ok", execute(JSON.parseArray(line).toArray(new String[0])));
            } catch (MQBrokerException e) {
                answer.put("error", e.getResponseCode());
                answer.put("message", String.valueOf(e.getErrorMessage()));
            } catch (MQClientException e) {
                answer.put("error", e.getResponseCode());
                answer.put("message", String.valueOf(e.getErrorMessage()));
            } catch (Throwable e) {
                answer.put("error", -1);
                answer.put("message", e.toString());
            }
            out.println(JSON.toJSONString(answer, JSONWriter.Feature.WriteNulls, JSONWriter.Feature.WriteNonStringKeyAsString));
        }
        System.exit(0);
    }

    private static Object execute(String[] a) throws Exception {
        switch (a[0]) {
            case "createTopic": { // address topic read write perm order attributes
                TopicConfig config = new TopicConfig(a[2], Integer.parseInt(a[3]), Integer.parseInt(a[4]), Integer.parseInt(a[5]));
                config.setOrder(Boolean.parseBoolean(a[6]));
                config.setAttributes(AttributeParser.parseToMap(a[7]));
                admin.createAndUpdateTopicConfig(a[1], config);
                return null;
            }
            case "topicConfig": { // address topic
                TopicConfig config = admin.examineTopicConfig(a[1], a[2]);
                Map<String, Object> m = new TreeMap<>();
                m.put("read", config.getReadQueueNums());
                m.put("write", config.getWriteQueueNums());
                m.put("perm", config.getPerm());
                m.put("order", config.isOrder());
                m.put("attributes", config.getAttributes());
                return m;
            }
            case "deleteTopic": // cluster topic
                admin.deleteTopic(a[2], a[1]);
                return null;
            case "topics":
                return new TreeSet<>(admin.fetchAllTopicList().getTopicList());
            case "topicsOfCluster":
                return new TreeSet<>(admin.fetchTopicsByCLuster(a[1]).getTopicList());
            case "allTopicConfigs":
                return new TreeSet<>(admin.getAllTopicConfig(a[1], TIMEOUT).getTopicConfigTable().keySet());
            case "route":
                return JSON.parse(admin.examineTopicRouteInfo(a[1]).toJson());
            case "cluster": {
                ClusterInfo info = admin.examineBrokerClusterInfo();
                Map<String, Object> m = new TreeMap<>();
                info.getBrokerAddrTable().forEach((name, data) -> {
                    Map<String, String> addresses = new TreeMap<>();
                    data.getBrokerAddrs().forEach((id, address) -> addresses.put(String.valueOf(id), address));
                    m.put(name, addresses);
                });
                return m;
            }
            case "topicStats": {
                List<Object> rows = new ArrayList<>();
                for (Map.Entry<MessageQueue, TopicOffset> e : admin.examineTopicStats(a[1]).getOffsetTable().entrySet())
                    rows.add(row(e.getKey(), e.getValue().getMinOffset(), e.getValue().getMaxOffset(), e.getValue().getLastUpdateTimestamp()));
                return rows;
            }
            case "groupsOfTopic":
                return new TreeSet<>(admin.queryTopicConsumeByWho(a[1]).getGroupList());
            case "topicsOfGroup":
                return new TreeSet<>(admin.queryTopicsByConsumer(a[1]).getTopicList());
            case "timeSpans": {
                List<Object> rows = new ArrayList<>();
                for (QueueTimeSpan span : admin.queryConsumeTimeSpan(a[1], a[2]))
                    rows.add(row(span.getMessageQueue(), span.getMinTimeStamp(), span.getMaxTimeStamp(), span.getConsumeTimeStamp(), span.getDelayTime()));
                return rows;
            }
            case "createGroup": // address json
                admin.createAndUpdateSubscriptionGroupConfig(a[1], JSON.parseObject(a[2], SubscriptionGroupConfig.class));
                return null;
            case "group": { // address group
                SubscriptionGroupConfig config = admin.examineSubscriptionGroupConfig(a[1], a[2]);
                return config == null ? null : JSON.parse(JSON.toJSONString(config));
            }
            case "groups":
                return new TreeSet<>(admin.getAllSubscriptionGroup(a[1], TIMEOUT).getSubscriptionGroupTable().keySet());
            case "deleteGroup":
                admin.deleteSubscriptionGroup(a[1], a[2], Boolean.parseBoolean(a[3]));
                return null;
            case "consumeStats": { // group topic
                ConsumeStats stats = a.length > 2 ? admin.examineConsumeStats(a[1], a[2]) : admin.examineConsumeStats(a[1]);
                List<Object> rows = new ArrayList<>();
                for (Map.Entry<MessageQueue, OffsetWrapper> e : stats.getOffsetTable().entrySet())
                    rows.add(row(e.getKey(), e.getValue().getBrokerOffset(), e.getValue().getConsumerOffset(), e.getValue().getPullOffset(), e.getValue().getLastTimestamp()));
                return rows;
            }
            case "consumers": { // group
                ConsumerConnection found = admin.examineConsumerConnectionInfo(a[1]);
                Map<String, Object> m = new TreeMap<>();
                Set<String> ids = new TreeSet<>();
                found.getConnectionSet().forEach(connection -> ids.add(connection.getClientId() + " " + connection.getLanguage()));
                m.put("ids", ids);
                Map<String, String> subscriptions = new TreeMap<>();
                found.getSubscriptionTable().forEach((topic, data) -> subscriptions.put(topic, data.getSubString()));
                m.put("subscriptions", subscriptions);
                m.put("type", String.valueOf(found.getConsumeType()));
                m.put("model", String.valueOf(found.getMessageModel()));
                return m;
            }
            case "producers": { // group topic
                Set<String> ids = new TreeSet<>();
                admin.examineProducerConnectionInfo(a[1], a[2]).getConnectionSet().forEach(connection -> ids.add(connection.getClientId()));
                return ids;
            }
            case "runningInfo": { // group client
                ConsumerRunningInfo info = admin.getConsumerRunningInfo(a[1], a[2], false);
                List<Object> rows = new ArrayList<>();
                info.getMqTable().forEach((queue, process) -> rows.add(row(queue, process.isLocked() ? 1 : 0)));
                return rows;
            }
            case "resetOffsets": { // group topic timestamp
                List<Object> rows = new ArrayList<>();
                admin.resetOffsetByTimestamp(a[2], a[1], Long.parseLong(a[3]), true).forEach((queue, offset) -> rows.add(row(queue, offset)));
                return rows;
            }
            case "offset": { // address group topic queue
                QueryConsumerOffsetRequestHeader header = new QueryConsumerOffsetRequestHeader();
                header.setConsumerGroup(a[2]);
                header.setTopic(a[3]);
                header.setQueueId(Integer.parseInt(a[4]));
                header.setSetZeroIfNotFound(false);
                return api.queryConsumerOffset(a[1], header, TIMEOUT);
            }
            case "commit": { // address group topic queue offset
                UpdateConsumerOffsetRequestHeader header = new UpdateConsumerOffsetRequestHeader();
                header.setConsumerGroup(a[2]);
                header.setTopic(a[3]);
                header.setQueueId(Integer.parseInt(a[4]));
                header.setCommitOffset(Long.parseLong(a[5]));
                api.updateConsumerOffset(a[1], header, TIMEOUT);
                return null;
            }
            case "bounds": { // topic broker queue
                MessageQueue queue = new MessageQueue(a[1], a[2], Integer.parseInt(a[3]));
                return Arrays.asList(admin.minOffset(queue), admin.maxOffset(queue), admin.earliestMsgStoreTime(queue));
            }
            case "search": { // topic broker queue timestamp boundary
                MessageQueue queue = new MessageQueue(a[1], a[2], Integer.parseInt(a[3]));
                BoundaryType boundary = BoundaryType.valueOf(a[5]);
                return api.searchOffset(a[6], queue, Long.parseLong(a[4]), boundary, TIMEOUT);
            }
            case "lock": { // address group client topic broker queue
                LockBatchRequestBody body = new LockBatchRequestBody();
                body.setConsumerGroup(a[2]);
                body.setClientId(a[3]);
                body.setMqSet(new HashSet<>(Collections.singleton(new MessageQueue(a[4], a[5], Integer.parseInt(a[6])))));
                return api.lockBatchMQ(a[1], body, TIMEOUT).size();
            }
            case "unlock": { // address group client topic broker queue
                UnlockBatchRequestBody body = new UnlockBatchRequestBody();
                body.setConsumerGroup(a[2]);
                body.setClientId(a[3]);
                body.setMqSet(new HashSet<>(Collections.singleton(new MessageQueue(a[4], a[5], Integer.parseInt(a[6])))));
                api.unlockBatchMQ(a[1], body, TIMEOUT, false);
                return null;
            }
            case "consumerStatus": { // topic group
                Map<String, Object> m = new TreeMap<>();
                admin.getConsumeStatus(a[1], a[2], "").forEach((client, table) -> {
                    List<Object> rows = new ArrayList<>();
                    table.forEach((queue, offset) -> rows.add(row(queue, offset)));
                    m.put(client, rows);
                });
                return m;
            }
            case "brokerConfig":
                return new TreeMap<>(admin.getBrokerConfig(a[1]));
            case "updateBrokerConfig": {
                Properties properties = new Properties();
                properties.setProperty(a[2], a[3]);
                admin.updateBrokerConfig(a[1], properties);
                return null;
            }
            case "runtimeInfo":
                return admin.fetchBrokerRuntimeStats(a[1]).getTable();
            case "message": { // topic id
                MessageExt message = admin.viewMessage(a[1], a[2]);
                Map<String, Object> m = new TreeMap<>();
                m.put("topic", message.getTopic());
                m.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
                m.put("queue", message.getQueueId());
                m.put("offset", message.getQueueOffset());
                m.put("tags", message.getTags());
                m.put("commitLogOffset", message.getCommitLogOffset());
                return m;
            }
            case "send": { // group topic queue body tags
                SendResult result = producer(a[1]).send(new Message(a[2], a[5], a[4].getBytes(StandardCharsets.UTF_8)),
                    (queues, message, id) -> {
                        for (MessageQueue queue : queues)
                            if (queue.getQueueId() == (Integer) id)
                                return queue;
                        return queues.get(0);
                    }, Integer.parseInt(a[3]));
                return Arrays.asList(result.getOffsetMsgId(), result.getQueueOffset(), result.getMessageQueue().getBrokerName());
            }
            case "producerId":
                return producer(a[1]).buildMQClientId();
            case "users": {
                Map<String, Object> m = new TreeMap<>();
                for (UserInfo user : orNone(admin.listUser(a[1], a[2])))
                    m.put(user.getUsername(), Arrays.asList(user.getUserType(), user.getUserStatus()));
                return m;
            }
            case "createUser":
                admin.createUser(a[1], a[2], a[3], a[4]);
                return null;
            case "acls": {
                Map<String, Object> m = new TreeMap<>();
                for (AclInfo acl : orNone(admin.listAcl(a[1], a[2], "")))
                    for (AclInfo.PolicyInfo policy : acl.getPolicies())
                        for (AclInfo.PolicyEntryInfo entry : policy.getEntries())
                            m.put(acl.getSubject() + " " + entry.getResource(), new TreeSet<>(entry.getActions()) + " " + entry.getDecision());
                return m;
            }
            case "createAcl": // address subject resource action
                admin.createAcl(a[1], a[2], Collections.singletonList(a[3]), Collections.singletonList(a[4]), null, "Allow");
                return null;
            default:
                throw new IllegalArgumentException("no such command: " + a[0]);
        }
    }

    private static <T> List<T> orNone(List<T> list) {
        return list == null ? Collections.emptyList() : list;
    }

    private static List<Object> row(MessageQueue queue, Object... values) {
        List<Object> row = new ArrayList<>(Arrays.asList(queue.getTopic(), queue.getBrokerName(), queue.getQueueId()));
        row.addAll(Arrays.asList(values));
        return row;
    }

    private static DefaultMQProducer producer(String group) throws MQClientException {
        DefaultMQProducer producer = PRODUCERS.get(group);
        if (producer == null) {
            producer = hook == null ? new DefaultMQProducer(group) : new DefaultMQProducer(group, hook);
            producer.setNamesrvAddr(nameServer);
            producer.setInstanceName("oracle" + System.nanoTime());
            producer.start();
            PRODUCERS.put(group, producer);
        }
        return producer;
    }
}
