"""Keys and certificates that are renewed under a running worker: it goes on, in the same process, and loses nothing."""

import asyncio
import datetime
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.worker.worker_process import WorkerProcess
from tests.support import broker_acl

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.config import NAME_SERVER
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.message import Message


def mount(place: Path, content: dict[str, str]) -> None:
    """A Secret's files, as the kubelet puts them there: behind one link, which is turned in one step."""
    place.mkdir(exist_ok=True)
    version = place / f"..{len(list(place.iterdir()))}"
    version.mkdir()
    for name, text in content.items():
        (version / name).write_text(text)
        if not (place / name).is_symlink():
            (place / name).symlink_to(f"..data/{name}")
    (place / "..data_tmp").symlink_to(version.name)
    (place / "..data_tmp").replace(place / "..data")


class Traffic:
    """Messages that are sent all the time."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.sent: list[str] = []

    async def run(self) -> None:
        while True:
            body = f"m{len(self.sent)}"
            await self._producer.send(Message(self._topic, body.encode()))
            self.sent.append(body)
            await asyncio.sleep(0.02)

    async def some_more(self, count: int = 50) -> None:
        target = len(self.sent) + count
        async with asyncio.timeout(60):
            while len(self.sent) < target:  # noqa: ASYNC110 - it is another task that sends
                await asyncio.sleep(0.05)


@asynccontextmanager
async def traffic(producer: Producer, topic: str) -> AsyncIterator[Traffic]:
    made = Traffic(producer, topic)
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def environment_of(cluster: Cluster, group: str, topic: str, **more: str) -> dict[str, str]:
    return {
        "ROCKETFLEET_NAME_SERVERS": cluster.name_server,
        "ROCKETFLEET_GROUP": group,
        "ROCKETFLEET_TOPICS": topic,
        "ROCKETFLEET_CONSUME_FROM_WHERE": "FirstOffset",
        "ROCKETFLEET_HANDLER": "handlers_under_test:handle",
        **more,
    }


async def handled(worker: WorkerProcess, count: int) -> None:
    """Wait, while others go on, until so many were handled."""
    async with asyncio.timeout(60):
        while len(worker.handled) < count:
            assert worker.process.poll() is None, worker.log_text
            await asyncio.sleep(0.05)


async def test_a_key_that_is_renewed_and_the_old_one_revoked(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(acl=True)
    admin, address = cluster.admin_user, cluster.broker_address
    assert admin is not None
    topic, group = cluster.create_topic(), cluster.create_group()
    secret = tmp_path / "acl"
    mount(secret, {"accessKey": "shop", "secretKey": "first-secret"})
    config = ClientConfig((cluster.name_server,), credentials=Credentials(admin.access_key, admin.secret_key))
    async with Client(config) as client, Producer(client, group="test-producer") as producer:
        user = broker_acl.User("shop", "first-secret", "Super")
        await broker_acl.create_user(client.remoting, address, user)
        # The variables are the key of the pod's start, as Kubernetes leaves them: what is in the directory counts.
        environment = environment_of(
            cluster,
            group,
            topic,
            ROCKETFLEET_CREDENTIALS_DIRECTORY=str(secret),
            ROCKETFLEET_ACCESS_KEY="shop",
            ROCKETFLEET_SECRET_KEY="first-secret",
        )
        worker = WorkerProcess(tmp_path / "worker", "worker", environment=environment)
        try:
            worker.until_ready()
            async with traffic(producer, topic) as sending:
                await handled(worker, 50)
                # The broker is first, and the worker's file a moment later: in between everything is refused.
                changed = broker_acl.User("shop", "second-secret")
                await broker_acl.update_user(client.remoting, address, changed)
                await sending.some_more()
                mount(secret, {"accessKey": "shop", "secretKey": "second-secret"})
                await sending.some_more()
                await handled(worker, len(sending.sent))

                # And the gentle way: another user, and then the old one goes.
                await broker_acl.create_user(
                    client.remoting, address, broker_acl.User("shop2", "third-secret", "Super")
                )
                mount(secret, {"accessKey": "shop2", "secretKey": "third-secret"})
                await sending.some_more()
                await broker_acl.delete_user(client.remoting, address, "shop")
                await sending.some_more()
            worker.until_handled(sending.sent)
            assert worker.process.poll() is None
            assert worker.json("/drain", "POST")["confirmed"] is True
            assert worker.wait() == 0
            for text in ("first-secret", "second-secret", "third-secret"):
                assert text not in worker.log_text
        finally:
            worker.kill()


async def test_certificates_and_authority_that_are_renewed_while_the_broker_restarts_with_its_own(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(tls=True, tls_client_auth=True)
    topic, group = cluster.create_topic(), cluster.create_group()
    files, mounted = cluster.layout.tls, tmp_path / "tls"
    names = {"ca.crt": certificates.CA, "tls.crt": certificates.CLIENT, "tls.key": certificates.CLIENT_KEY}

    def remount() -> None:
        mount(mounted, {name: (files / source).read_text() for name, source in names.items()})

    remount()
    authority, certificate, key = (str(files / name) for name in names.values())
    tls = TlsConfig(ca_file=authority, cert_file=certificate, key_file=key)
    environment = environment_of(
        cluster,
        group,
        topic,
        ROCKETFLEET_CA_FILE=str(mounted / "ca.crt"),
        ROCKETFLEET_CERT_FILE=str(mounted / "tls.crt"),
        ROCKETFLEET_KEY_FILE=str(mounted / "tls.key"),
    )
    worker = WorkerProcess(tmp_path / "worker", "worker", environment=environment)
    try:
        bodies = [f"a{number}" for number in range(20)]
        async with Producer(ClientConfig((cluster.name_server,), tls=tls), group="test-producer") as producer:
            for body in bodies:
                await producer.send(Message(topic, body.encode()))
            await handled(worker, len(bodies))

        for name, content in certificates.make_certificates(datetime.datetime.now(datetime.UTC)).items():
            (files / name).write_bytes(content)
        await asyncio.to_thread(cluster.restart, NAME_SERVER)
        await asyncio.to_thread(cluster.restart)
        remount()
        async with Producer(ClientConfig((cluster.name_server,), tls=tls), group="test-producer") as producer:
            more = [f"b{number}" for number in range(20)]
            for body in more:
                await producer.send(Message(topic, body.encode()))
        worker.until_handled(bodies + more)
        assert worker.process.poll() is None
        shutil.rmtree(mounted)  # what is gone is not missed while nobody connects
        assert worker.json("/drain", "POST")["confirmed"] is True
        assert worker.wait() == 0
    finally:
        worker.kill()
