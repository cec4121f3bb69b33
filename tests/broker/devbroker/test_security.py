"""ACL, TLS and the proxy, on one cluster that has them all: who is let in, and who is not."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster

from rocketfleet.devbroker.errors import DevBrokerError, ProbeError
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.codes import RequestCode

# Four JVMs start for the first test: seconds on a quiet machine, minutes on one that others use as well.
pytestmark = pytest.mark.timeout(900)

NO_PERMISSION = 16


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("secure"))
    made.start(FleetSpec(acl=True, tls=True, tls_client_auth=True, slave=True, proxy=True))
    yield made
    made.stop(delete_data=True)


def test_the_administrator_is_let_in(cluster: Cluster) -> None:
    # Not its runtime info: a broker fails on that (NoSuchElementException) until its first sample of statistics.
    for process in ("broker-a", "broker-a-slave"):
        assert cluster.probe().call(cluster.address_of(process), RequestCode.GET_BROKER_CONFIG).code == 0
    assert cluster.create_topic()
    assert cluster.create_group()


def test_without_credentials_or_with_wrong_ones_nobody_is(cluster: Cluster) -> None:
    right = cluster.admin_user
    assert right is not None
    for admin in (None, Credentials(right.access_key, "wrong-secret"), Credentials("stranger", right.secret_key)):
        answer = Probe(admin, cluster.ssl_context()).call(cluster.broker_address, RequestCode.GET_BROKER_RUNTIME_INFO)
        assert answer.code == NO_PERMISSION
        assert right.secret_key not in (answer.remark or "")


def test_mqadmin_has_credentials_and_certificates(cluster: Cluster) -> None:
    listed = cluster.admin("clusterList")
    assert cluster.address_of("broker-a") in listed
    assert cluster.address_of("broker-a-slave") in listed


def test_mqadmins_failure_is_raised_though_it_exits_with_0(cluster: Cluster) -> None:
    with pytest.raises(DevBrokerError, match="mqadmin topicRoute failed"):
        cluster.admin("topicRoute", "-t", "nowhere")


def test_plain_text_is_refused(cluster: Cluster) -> None:
    for address, code in (
        (cluster.name_server, RequestCode.GET_BROKER_CLUSTER_INFO),
        (cluster.broker_address, RequestCode.GET_BROKER_RUNTIME_INFO),
    ):
        with pytest.raises(ProbeError):
            Probe(cluster.admin_user).call(address, code)


def test_a_client_that_does_not_trust_the_ca_refuses_the_server(cluster: Cluster) -> None:
    with pytest.raises(ProbeError, match="CERTIFICATE_VERIFY_FAILED"):
        Probe(cluster.admin_user, ssl.create_default_context()).call(
            cluster.name_server, RequestCode.GET_BROKER_CLUSTER_INFO
        )


def test_a_client_without_a_certificate_is_refused(cluster: Cluster) -> None:
    bare = ssl.create_default_context(cafile=cluster.layout.tls / certificates.CA)
    with pytest.raises(ProbeError):
        Probe(cluster.admin_user, bare).call(cluster.broker_address, RequestCode.GET_BROKER_RUNTIME_INFO)


def test_the_proxy_speaks_http2_over_tls(cluster: Cluster) -> None:
    context = cluster.ssl_context()
    context.set_alpn_protocols(["h2"])
    host, _, port = cluster.address_of("proxy").rpartition(":")
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        assert secure.selected_alpn_protocol() == "h2"


def test_secrets_are_not_in_what_other_users_can_read(cluster: Cluster) -> None:
    right = cluster.admin_user
    assert right is not None
    for process, identity in cluster.known().processes.items():
        assert right.secret_key not in Path(f"/proc/{identity.pid}/cmdline").read_text(), process
    open_to_others = [
        path
        for path in cluster.directory.rglob("*")
        if path.is_file()
        and path.stat().st_mode & 0o077
        and not any(
            parent.stat().st_mode & 0o077 == 0 for parent in path.parents if parent.is_relative_to(cluster.directory)
        )
        and right.secret_key.encode() in path.read_bytes()
    ]
    assert open_to_others == []
