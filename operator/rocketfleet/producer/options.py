"""What a producer is told when it is made, beyond where the cluster is. Times are in seconds."""

from dataclasses import dataclass, field

from rocketfleet.client.requests.broker_messages import AUTO_CREATE_TOPIC
from rocketfleet.producer import checks
from rocketfleet.producer.batching.accumulator import BatchLimits
from rocketfleet.producer.queues.faults import LADDER
from rocketfleet.producer.retry import RetryPolicy
from rocketfleet.wire.command import HeaderForm
from rocketfleet.wire.message.compression import DEFAULT_LEVEL, Compression


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """The defaults are those of Java's DefaultMQProducer.

    - send_timeout: for a whole send, retries included.
    - latency_fault_tolerance: leave slow and failing brokers alone for a while, as fault_ladder says (pairs of latency
      and period, ascending); see `faults.py`. Off, as in Java.
    - batching: put single sends together into batches; see `accumulator.py`. None sends each on its own.
    - create_topic_key, default_queues: what a topic is modelled on that the broker creates at its first message, and
      with how many queues at most.
    """

    send_timeout: float = 3.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    latency_fault_tolerance: bool = False
    fault_ladder: tuple[tuple[float, float], ...] = LADDER
    batching: BatchLimits | None = None
    compress_over: int = 4 * 1024
    compression: Compression = Compression.ZLIB
    compression_level: int = DEFAULT_LEVEL
    max_message_size: int = checks.MAX_MESSAGE_SIZE
    create_topic_key: str = AUTO_CREATE_TOPIC
    default_queues: int = 4
    heartbeat_interval: float = 30.0
    probe_interval: float = 2.0
    probe_timeout: float = 0.2
    header_form: HeaderForm = HeaderForm.ROCKETMQ

    def __post_init__(self) -> None:
        for name in ("send_timeout", "heartbeat_interval", "probe_interval", "probe_timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {getattr(self, name)}")
        for name in ("compress_over", "max_message_size", "default_queues"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if list(self.fault_ladder) != sorted(self.fault_ladder):
            raise ValueError("fault_ladder must be ascending")
