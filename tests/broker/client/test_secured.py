"""Clusters that ask who we are: access keys, and TLS with a client certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.client.oracle import oracle_of
from tests.support import broker_acl

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.errors import NoPermission, RocketMQError
from rocketfleet.client.requests import broker_messages, broker_topics
from rocketfleet.devbroker.setup import certificates
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.cluster import Cluster
    from tests.broker.java_main import JavaPrograms


async def test_access_keys(make_cluster: Callable[..., Cluster], java: JavaPrograms) -> None:
    cluster = make_cluster(acl=True)
    admin = cluster.admin_user
    assert admin is not None
    address, name_server = cluster.broker_address, cluster.name_server
    credentials = Credentials(admin.access_key, admin.secret_key)
    async with Client(ClientConfig(name_server, credentials=credentials, timeout=10)) as client:
        remoting = client.remoting
        with oracle_of(java, name_server, admin.access_key, admin.secret_key) as oracle:
            await broker_topics.create_topic(remoting, address, TopicConfig("orders", 2, 2))
            assert oracle("topicConfig", address, "orders")["read"] == 2
            await broker_acl.create_user(remoting, address, broker_acl.User("alice", "alice-secret", "Normal"))
            assert oracle("users", address, "alice") == {"alice": ["Normal", "enable"]}
            oracle("createUser", address, "bob", "bob-secret", "Normal")
            users = {user.username: user for user in await broker_acl.users(remoting, address)}
            assert {"alice", "bob", admin.access_key} <= users.keys()
            assert users["bob"].user_type == "Normal"
            entry = broker_acl.PolicyEntry("Topic:orders", ("Pub",))
            await broker_acl.create_acl(remoting, address, "User:alice", [entry])
            assert oracle("acls", address, "alice") == {"User:alice Topic:orders": "[Pub] Allow"}
            oracle("createAcl", address, "User:bob", "Topic:orders", "Sub")
            (bob,) = await broker_acl.acls(remoting, address, "bob")
            assert bob.subject == "User:bob"
            assert [(one.resource, one.actions, one.decision) for one in bob.policies[0].entries] == [
                ("Topic:orders", ("Sub",), "Allow")
            ]
            await _only_what_is_allowed(name_server, address)
            await broker_acl.update_user(remoting, address, broker_acl.User("bob", user_status="disable"))
            assert oracle("users", address, "bob") == {"bob": ["Normal", "disable"]}
            await broker_acl.delete_acl(remoting, address, "User:bob", "Topic:orders")
            assert oracle("acls", address, "bob") == {}
            await broker_acl.delete_user(remoting, address, "bob")
            assert oracle("users", address, "bob") == {}


async def _only_what_is_allowed(name_server: str, address: str) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    send = broker_messages.send_request(queue, b"hello", group="producers", born_timestamp=1)
    alice = ClientConfig(name_server, credentials=Credentials("alice", "alice-secret"), timeout=10)
    async with Client(alice) as client:
        assert (await broker_messages.send(client.remoting, address, send)).code == 0
        assert (await broker_messages.send(client.remoting, address, send)).queue_offset == 1  # signed anew
        with pytest.raises(NoPermission):
            await broker_topics.delete_topic(client.remoting, address, "orders")
        with pytest.raises(NoPermission):
            await broker_messages.pull(client.remoting, address, broker_messages.pull_request("g", queue, 0))
    for stranger in (None, Credentials("alice", "wrong-secret"), Credentials("nobody", "alice-secret")):
        async with Client(ClientConfig(name_server, credentials=stranger, timeout=10)) as client:
            with pytest.raises(
                NoPermission, match=r"SEND_MESSAGE_V2 \(310\) to .* failed with NO_PERMISSION"
            ) as caught:
                await broker_messages.send(client.remoting, address, send)
            assert "secret" not in str(caught.value)


async def test_tls_with_a_client_certificate(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(tls=True, tls_client_auth=True)
    files = cluster.layout.tls
    tls = TlsConfig(
        ca_file=str(files / certificates.CA),
        cert_file=str(files / certificates.CLIENT),
        key_file=str(files / certificates.CLIENT_KEY),
    )
    async with Client(ClientConfig(cluster.name_server, tls=tls, timeout=10)) as client:
        await broker_topics.create_topic(client.remoting, cluster.broker_address, TopicConfig("orders", 2, 2))
        assert len((await client.publish_info("orders")).queues) == 2
        queue = MessageQueue("orders", "broker-a", 0)
        for size in (10, 2_000_000):
            send = broker_messages.send_request(queue, bytes(size), group="producers", born_timestamp=1)
            assert (await broker_messages.send(client.remoting, client.master("broker-a"), send)).code == 0
        pull = broker_messages.pull_request("g", queue, 0, sys_flag=4, subscription="*")
        pulled = await broker_messages.pull(client.remoting, client.master("broker-a"), pull)
        assert len(pulled.messages()[0].body) == 10
    for refused in (None, TlsConfig(ca_file=tls.ca_file), TlsConfig()):
        async with Client(ClientConfig(cluster.name_server, tls=refused, timeout=3)) as client:
            with pytest.raises(RocketMQError):
                await client.route("orders")
