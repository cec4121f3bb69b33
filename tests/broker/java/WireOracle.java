import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.Compressor;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.filter.ExpressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageBatch;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageId;
import org.apache.rocketmq.common.message.MessageVersion;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Writes with Java's own classes what the Python codec should read, and reads what it wrote.
 *
 * A JSON object per line in, {"op": name, ...}; one per line out, {"answer": ...} or {"error": text}. Bytes are base64.
 */
public class WireOracle {

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject reply = new JSONObject();
            try {
                reply.put("answer", answer(JSON.parseObject(line)));
            } catch (Throwable e) {
                reply.put("error", e.toString());
            }
            out.println(JSON.toJSONString(reply, JSONWriter.Feature.WriteNulls));
        }
    }

    private static Object answer(JSONObject ask) throws Exception {
        switch (ask.getString("op")) {
            case "constants":
                return constants();
            case "command-encode":
                return commandEncode(ask);
            case "command-decode":
                return commandDecode(ask);
            case "message-encode":
                return text(messageEncode(ask));
            case "message-decode":
                return messageDecode(ask);
            case "batch-encode":
                return text(MessageBatch.generateFromList(messages(ask)).encode());
            case "batch-decode":
                return batchDecode(ask);
            case "properties-encode":
                return MessageDecoder.messageProperties2String(strings(ask, "properties"));
            case "properties-decode":
                return new JSONObject(MessageDecoder.string2messageProperties(ask.getString("text")));
            case "compress":
                return text(compressor(ask).compress(bytes(ask, "data"), ask.getIntValue("level")));
            case "decompress":
                return text(compressor(ask).decompress(bytes(ask, "data")));
            case "unique-id-create":
                return MessageClientIDSetter.createUniqID();
            case "unique-id-decode":
                return uniqueIdDecode(ask.getString("id"));
            case "offset-id-create":
                return MessageDecoder.createMessageId(address(ask.getString("host")), ask.getLongValue("offset"));
            case "offset-id-decode":
                return offsetIdDecode(ask.getString("id"));
            case "hash":
                return ask.getString("text").hashCode();
            case "sign":
                return sign(ask);
            case "subscription":
                return RemotingSerializable.toJson(FilterAPI.build(ask.getString("topic"), ask.getString("expression"),
                    ask.getString("type") == null ? ExpressionType.TAG : ask.getString("type")), false);
            case "body":
                return body(ask);
            default:
                throw new IllegalArgumentException("unknown op");
        }
    }

    private static JSONObject constants() throws Exception {
        JSONObject all = new JSONObject();
        all.put("version", MQVersion.CURRENT_VERSION);
        all.put("request", numbers(RequestCode.class));
        JSONObject response = numbers(ResponseCode.class.getSuperclass());
        response.putAll(numbers(ResponseCode.class));
        all.put("response", response);
        all.put("sysFlag", numbers(MessageSysFlag.class));
        all.put("system", new TreeSet<>(MessageConst.STRING_HASH_SET));
        JSONObject languages = new JSONObject();
        for (LanguageCode language : LanguageCode.values()) {
            languages.put(language.name(), language.getCode());
        }
        all.put("language", languages);
        return all;
    }

    private static JSONObject numbers(Class<?> type) throws Exception {
        JSONObject found = new JSONObject();
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && (field.getType() == int.class || field.getType() == short.class)) {
                found.put(field.getName(), field.getInt(null));
            }
        }
        return found;
    }

    // --- commands

    private static Object commandEncode(JSONObject ask) throws Exception {
        RemotingCommand command = RemotingCommand.createRequestCommand(ask.getIntValue("code"), null);
        command.setLanguage(LanguageCode.valueOf(ask.getByteValue("language")));
        command.setVersion(ask.getIntValue("version"));
        command.setOpaque(ask.getIntValue("opaque"));
        command.setFlag(ask.getIntValue("flag"));
        command.setRemark(ask.getString("remark"));
        command.setExtFields(strings(ask, "fields"));
        command.setBody(bytes(ask, "body"));
        command.setSerializeTypeCurrentRPC(SerializeType.valueOf((byte) ask.getIntValue("form")));
        ByteBuffer whole = command.encode();
        ByteBuf fast = Unpooled.buffer();
        command.fastEncodeHeader(fast);
        byte[] header = new byte[fast.readableBytes()];
        fast.readBytes(header);
        byte[] frame = new byte[whole.remaining()];
        whole.get(frame);
        // The broker writes responses by the second way; both must be what we read.
        return Arrays.asList(text(frame), text(concat(header, command.getBody())));
    }

    private static byte[] concat(byte[] first, byte[] second) {
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    private static JSONObject commandDecode(JSONObject ask) throws Exception {
        RemotingCommand command = RemotingCommand.decode(bytes(ask, "payload"));
        JSONObject read = new JSONObject();
        read.put("code", command.getCode());
        read.put("language", command.getLanguage().getCode());
        read.put("version", command.getVersion());
        read.put("opaque", command.getOpaque());
        read.put("flag", command.getFlag());
        read.put("remark", command.getRemark());
        read.put("fields", command.getExtFields() == null ? new JSONObject() : new JSONObject(command.getExtFields()));
        read.put("body", text(command.getBody() == null ? new byte[0] : command.getBody()));
        read.put("form", command.getSerializeTypeCurrentRPC().getCode());
        return read;
    }

    private static String sign(JSONObject ask) {
        RemotingCommand command = RemotingCommand.createRequestCommand(1, null);
        command.setExtFields(strings(ask, "fields"));
        command.setBody(bytes(ask, "body"));
        String token = ask.getString("token");
        SessionCredentials credentials = token == null
            ? new SessionCredentials(ask.getString("access"), ask.getString("secret"))
            : new SessionCredentials(ask.getString("access"), ask.getString("secret"), token);
        new AclClientRPCHook(credentials).doBeforeRequest("", command);
        return command.getExtFields().get("Signature");
    }

    // --- messages

    private static byte[] messageEncode(JSONObject ask) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(ask.getString("topic"));
        message.setBody(bytes(ask, "body"));
        MessageAccessor.setProperties(message, strings(ask, "properties"));
        message.setQueueId(ask.getIntValue("queue_id"));
        message.setQueueOffset(ask.getLongValue("queue_offset"));
        message.setCommitLogOffset(ask.getLongValue("commit_log_offset"));
        message.setFlag(ask.getIntValue("flag"));
        message.setSysFlag(ask.getIntValue("sys_flag"));
        message.setBornTimestamp(ask.getLongValue("born_timestamp"));
        message.setBornHost(address(ask.getString("born_host")));
        message.setStoreTimestamp(ask.getLongValue("store_timestamp"));
        message.setStoreHost(address(ask.getString("store_host")));
        message.setReconsumeTimes(ask.getIntValue("reconsume_times"));
        message.setPreparedTransactionOffset(ask.getLongValue("prepared_transaction_offset"));
        message.setBodyCRC(ask.getIntValue("body_crc"));
        if (!ask.getBooleanValue("by_store")) {
            return MessageDecoder.encode(message, true);
        }
        // The way into the commit log. The offset there is filled in when the place is known.
        if (message.getTopic().getBytes(StandardCharsets.UTF_8).length > Byte.MAX_VALUE) {
            message.setVersion(MessageVersion.MESSAGE_VERSION_V2);
        }
        if ((message.getSysFlag() & MessageSysFlag.COMPRESSED_FLAG) != 0) {
            Compressor compressor = CompressorFactory.getCompressor(MessageSysFlag.getCompressionType(message.getSysFlag()));
            message.setBody(compressor.compress(message.getBody(), 5));
        }
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        MessageExtEncoder encoder = new MessageExtEncoder(new MessageStoreConfig());
        if (encoder.encode(message) != null) {
            throw new IllegalStateException("the store refuses the message");
        }
        ByteBuffer buffer = encoder.getEncoderBuffer();
        byte[] stored = new byte[buffer.getInt(0)];
        buffer.get(stored);
        ByteBuffer.wrap(stored).putLong(MessageDecoder.MESSAGE_PHYSIC_OFFSET_POSITION, message.getCommitLogOffset());
        return stored;
    }

    private static JSONArray messageDecode(JSONObject ask) throws Exception {
        JSONArray read = new JSONArray();
        List<MessageExt> messages = new ArrayList<>();
        for (MessageExt message : MessageDecoder.decodes(ByteBuffer.wrap(bytes(ask, "data")))) {
            // What the pull consumer does with a response.
            if (MessageSysFlag.check(message.getSysFlag(), MessageSysFlag.INNER_BATCH_FLAG)
                && MessageSysFlag.check(message.getSysFlag(), MessageSysFlag.NEED_UNWRAP_FLAG)) {
                MessageDecoder.decodeMessage(message, messages);
            } else {
                messages.add(message);
            }
        }
        for (MessageExt message : messages) {
            JSONObject fields = new JSONObject();
            fields.put("topic", message.getTopic());
            fields.put("body", text(message.getBody() == null ? new byte[0] : message.getBody()));
            Map<String, String> properties = message.getProperties();
            fields.put("properties", properties == null ? new JSONObject() : new JSONObject(properties));
            fields.put("queue_id", message.getQueueId());
            fields.put("queue_offset", message.getQueueOffset());
            fields.put("commit_log_offset", message.getCommitLogOffset());
            fields.put("flag", message.getFlag());
            fields.put("sys_flag", message.getSysFlag());
            fields.put("born_timestamp", message.getBornTimestamp());
            fields.put("born_host", host(message.getBornHost()));
            fields.put("store_timestamp", message.getStoreTimestamp());
            fields.put("store_host", host(message.getStoreHost()));
            fields.put("reconsume_times", message.getReconsumeTimes());
            fields.put("prepared_transaction_offset", message.getPreparedTransactionOffset());
            fields.put("body_crc", message.getBodyCRC());
            fields.put("store_size", message.getStoreSize());
            fields.put("msg_id", message.getMsgId());
            fields.put("tags", message.getTags());
            fields.put("keys", message.getKeys());
            read.add(fields);
        }
        return read;
    }

    private static List<Message> messages(JSONObject ask) {
        List<Message> messages = new ArrayList<>();
        for (Object each : ask.getJSONArray("messages")) {
            JSONObject fields = (JSONObject) each;
            Message message = new Message(fields.getString("topic"), fields.getString("tags"), fields.getString("keys"),
                fields.getIntValue("flag"), bytes(fields, "body"), fields.getBooleanValue("wait"));
            strings(fields, "properties").forEach(message::putUserProperty);
            messages.add(message);
        }
        return messages;
    }

    private static JSONArray batchDecode(JSONObject ask) throws Exception {
        JSONArray read = new JSONArray();
        for (Message message : MessageDecoder.decodeMessages(ByteBuffer.wrap(bytes(ask, "data")))) {
            JSONObject fields = new JSONObject();
            fields.put("body", text(message.getBody()));
            fields.put("flag", message.getFlag());
            fields.put("properties", new JSONObject(message.getProperties()));
            fields.put("tags", message.getTags());
            fields.put("keys", message.getKeys());
            fields.put("wait", message.isWaitStoreMsgOK());
            fields.put("delay_level", message.getDelayTimeLevel());
            fields.put("delay_seconds", message.getDelayTimeSec());
            fields.put("delay_milliseconds", message.getDelayTimeMs());
            fields.put("deliver_at", message.getDeliverTimeMs());
            fields.put("buyer_id", message.getBuyerId());
            fields.put("priority", message.getPriority());
            fields.put("sharding_key", message.getProperty(MessageConst.PROPERTY_SHARDING_KEY));
            read.add(fields);
        }
        return read;
    }

    private static Compressor compressor(JSONObject ask) {
        return CompressorFactory.getCompressor(CompressionType.of(ask.getString("kind")));
    }

    private static JSONObject uniqueIdDecode(String id) throws Exception {
        JSONObject read = new JSONObject();
        read.put("address", InetAddress.getByAddress(MessageClientIDSetter.getIPFromID(id)).getHostAddress());
        read.put("process_id", MessageClientIDSetter.getPidFromID(id));
        read.put("time", MessageClientIDSetter.getNearlyTimeFromID(id).getTime());
        return read;
    }

    private static JSONObject offsetIdDecode(String id) throws Exception {
        MessageId read = MessageDecoder.decodeMessageId(id);
        JSONObject fields = new JSONObject();
        fields.put("host", host(read.getAddress()));
        fields.put("offset", read.getOffset());
        return fields;
    }

    /** Reads our JSON into Java's class and writes it again: what Java did not take over is missing in the answer. */
    private static String body(JSONObject ask) throws Exception {
        Class<?> type = Class.forName(ask.getString("class"));
        return RemotingSerializable.toJson(RemotingSerializable.decode(bytes(ask, "data"), type), false);
    }

    // --- pieces

    private static byte[] bytes(JSONObject from, String name) {
        return Base64.getDecoder().decode(from.getString(name));
    }

    private static String text(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }

    private static HashMap<String, String> strings(JSONObject from, String name) {
        HashMap<String, String> map = new HashMap<>();
        JSONObject given = from.getJSONObject(name);
        for (String key : given.keySet()) {
            map.put(key, given.getString(key));
        }
        return map;
    }

    private static SocketAddress address(String host) throws Exception {
        int colon = host.lastIndexOf(':');
        String address = host.substring(0, colon);
        return new InetSocketAddress(InetAddress.getByName(address), Integer.parseInt(host.substring(colon + 1)));
    }

    private static String host(SocketAddress address) {
        InetSocketAddress internet = (InetSocketAddress) address;
        return text(internet.getAddress().getAddress()) + ":" + internet.getPort();
    }
}
