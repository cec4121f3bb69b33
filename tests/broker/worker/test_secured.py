"""A worker of a cluster with users and TLS, told everything by its environment, as in a pod."""

from collections.abc import Callable
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.worker.worker_process import TOKEN, WorkerProcess
from tests.support.waiting import wait_until

from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.message import Message


async def test_credentials_and_certificates_come_by_the_environment_and_stay_out_of_the_log(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(acl=True, tls=True)
    admin = cluster.admin_user
    assert admin is not None
    topic, group = cluster.create_topic(), cluster.create_group()
    authority = str(cluster.layout.tls / "ca.pem")
    config = ClientConfig(
        (cluster.name_server,),
        credentials=Credentials(admin.access_key, admin.secret_key),
        tls=TlsConfig(ca_file=authority),
    )
    async with Producer(config, group="test-producer") as producer:
        await producer.send(Message(topic, b"hello"))
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    environment = {
        "ROCKETFLEET_NAME_SERVERS": cluster.name_server,
        "ROCKETFLEET_ACCESS_KEY": admin.access_key,
        "ROCKETFLEET_SECRET_KEY": admin.secret_key,
        "ROCKETFLEET_CA_FILE": authority,
        "ROCKETFLEET_GROUP": group,
        "ROCKETFLEET_TOPICS": topic,
        "ROCKETFLEET_CONSUME_FROM_WHERE": "FirstOffset",
        "ROCKETFLEET_HANDLER": "handlers_under_test:handle",
        "ROCKETFLEET_TOKEN_FILE": str(token_file),
        "ROCKETFLEET_LOG_LEVEL": "debug",
    }
    worker = WorkerProcess(tmp_path / "worker", "worker", environment=environment, token=None)
    try:
        worker.until_ready()
        wait_until(lambda: worker.handled == ["hello"], "the message is handled")
        token_file.write_text("another-token")
        assert worker.ask("/drain", "POST", token=TOKEN)[0] == 403
        assert worker.json("/drain", "POST", token="another-token")["confirmed"] is True
        assert worker.wait() == 0
        for secret in (admin.secret_key, TOKEN, "another-token"):
            assert secret not in worker.log_text

        wrong = {**environment, "ROCKETFLEET_SECRET_KEY": "forged-secret", "ROCKETFLEET_JOIN_TIMEOUT": "0"}
        worker = WorkerProcess(tmp_path / "worker", "forged", environment=wrong, token=None)
        assert worker.wait() == 3
        assert "forged-secret" not in worker.log_text
    finally:
        worker.kill()
