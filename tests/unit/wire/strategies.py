"""What messages, commands and bodies can look like, for Hypothesis."""

from hypothesis import strategies as st

from rocketfleet.wire.command import Command, HeaderForm
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.queue import MessageQueue

int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
"""Any text that UTF-8 can carry: all but lone surrogates."""

property_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), max_size=30)
properties = st.dictionaries(property_text.filter(bool), property_text, max_size=12)

queues = st.builds(MessageQueue, text, text, int32)


@st.composite
def commands(draw: st.DrawFn, form: HeaderForm | None = None) -> Command:
    chosen = draw(st.sampled_from(HeaderForm)) if form is None else form
    binary = chosen is HeaderForm.ROCKETMQ
    remark = draw(st.none() | text)
    return Command(
        code=draw(int16 if binary else int32),
        fields=draw(st.dictionaries(text, text, max_size=8)),
        body=draw(st.binary(max_size=200)),
        opaque=draw(int32),
        flag=draw(int32),
        remark=remark or None if binary else remark,  # the binary form has no difference between empty and none
        language=draw(st.integers(0, 13)),
        version=draw(int16 if binary else int32),
        form=chosen,
    )


ipv4 = st.ip_addresses(v=4).map(str)
ipv6 = st.ip_addresses(v=6).map(lambda address: f"[{address}]")
hosts = st.builds(lambda address, port: f"{address}:{port}", ipv4 | ipv6, st.integers(0, 65535))

compressions = st.sampled_from([0, sysflag.COMPRESSED, *(sysflag.COMPRESSED | kind << 8 for kind in (1, 2, 3))])
sys_flags = st.builds(
    lambda compression, other: compression | other,
    compressions,
    st.sampled_from([0, sysflag.MULTI_TAGS, sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_ROLLBACK]),
)

stored_fields = st.fixed_dictionaries(
    {
        "topic": text | st.text("abc", min_size=120, max_size=300),
        "body": st.binary(max_size=300),
        "properties": properties,
    },
    optional={
        "queue_id": int32,
        "queue_offset": int64,
        "commit_log_offset": int64,
        "flag": int32,
        "sys_flag": sys_flags,
        "born_timestamp": int64,
        "born_host": hosts,
        "store_timestamp": int64,
        "store_host": hosts,
        "reconsume_times": int32,
        "prepared_transaction_offset": int64,
    },
)
"""Arguments of `encode_stored`, each optional field present or not."""
