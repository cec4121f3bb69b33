"""The plan of a fleet: flags and files, without anything being started."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.devbroker.setup.config import RESERVED_PROPERTIES, FleetSpec, Layout
from rocketfleet.devbroker.setup.plan import FleetPlan, PlanInputs, plan_fleet, render
from rocketfleet.wire.acl import Credentials

LAYOUT = Layout(Path("/fleet"))
ADMIN = Credentials("root", "s3cret-word")


def plan(spec: FleetSpec) -> FleetPlan:
    ports = {process: 20000 + 10 * place for place, process in enumerate(spec.listeners)}
    return plan_fleet(spec, PlanInputs(LAYOUT, ports, "/bin/java", "/jars/*", ADMIN if spec.acl else None))


def properties(spec: FleetSpec, process: str) -> dict[str, str]:
    return parse_properties(plan(spec).files[LAYOUT.configuration / f"{process}.properties"])


def parse_properties(text: str) -> dict[str, str]:
    """As java.util.Properties reads it: a key up to the first =, blanks after that dropped, escapes resolved."""
    found = {}
    for line in text.splitlines():
        key, _, raw = line.partition("=")
        raw = raw.lstrip(" \t\f")
        value, place = [], 0
        while place < len(raw):
            if raw[place] != "\\":
                value.append(ord(raw[place]))
                place += 1
            elif raw[place + 1] == "u":
                value.append(int(raw[place + 2 : place + 6], 16))
                place += 6
            else:
                value.append(ord({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(raw[place + 1], raw[place + 1])))
                place += 2
        found[key] = b"".join(unit.to_bytes(2) for unit in value).decode("utf-16-be")
    return found


@settings(deadline=None)  # a busy machine is no bug
@given(st.dictionaries(st.from_regex(r"[a-zA-Z][\w.]*", fullmatch=True).filter(str.isascii), st.text()))
def test_java_reads_back_what_is_rendered(content: dict[str, str]) -> None:
    assert parse_properties(render(content)) == content


def test_a_broker_listens_on_loopback_where_it_was_told() -> None:
    found = properties(FleetSpec(), "broker-a")
    assert found["bindAddress"] == found["brokerIP1"] == found["brokerIP2"] == "127.0.0.1"
    assert (found["listenPort"], found["haListenPort"]) == ("20010", "20011")
    assert found["namesrvAddr"] == "127.0.0.1:20000"
    assert found["storePathRootDir"] == "/fleet/data/broker-a"
    assert found["brokerRole"] == "ASYNC_MASTER"
    assert found["autoCreateTopicEnable"] == found["autoCreateSubscriptionGroup"] == "true"


def test_a_slave_has_its_masters_name_and_stays_a_slave() -> None:
    spec = FleetSpec(brokers=2, slave=True, properties=(("brokerRole", "SYNC_MASTER"),))
    master, slave = properties(spec, "broker-b"), properties(spec, "broker-b-slave")
    assert (master["brokerName"], master["brokerId"], master["brokerRole"]) == ("broker-b", "0", "SYNC_MASTER")
    assert (slave["brokerName"], slave["brokerId"], slave["brokerRole"]) == ("broker-b", "1", "SLAVE")
    assert master["storePathRootDir"] != slave["storePathRootDir"]


def test_a_controller_is_in_the_name_server_and_decides_the_roles() -> None:
    spec = FleetSpec(slave=True, controller=True, properties=(("brokerRole", "SYNC_MASTER"),))
    found = properties(spec, "name-server")
    assert found["enableControllerInNamesrv"] == "true"
    assert found["controllerDLegerPeers"] == f"{found['controllerDLegerSelfId']}-127.0.0.1:20030"
    assert (found["bindAddress"], found["listenPort"]) == ("127.0.0.1", "20000")
    assert found["controllerStorePath"] == "/fleet/data/controller"
    assert plan(spec).processes["name-server"].ready_words == "ControllerManager boot success"
    for process in ("broker-a", "broker-a-slave"):
        replica = properties(spec, process)
        assert (replica["enableControllerMode"], replica["controllerAddr"]) == ("true", "127.0.0.1:20030")
        assert (replica["brokerName"], replica["brokerId"], replica["brokerRole"]) == ("broker-a", "-1", "SLAVE")


def test_without_a_controller_nobody_hears_of_one() -> None:
    made = plan(FleetSpec(slave=True))
    assert not any("ontroller" in content for content in made.files.values())
    assert not any("java.lang=" in word for word in made.processes["name-server"].argv)


def test_further_properties_win_over_our_choices() -> None:
    spec = FleetSpec(auto_create_topics=False, properties=(("diskMaxUsedSpaceRatio", "50"), ("x", "y")))
    found = properties(spec, "broker-a")
    assert (found["diskMaxUsedSpaceRatio"], found["x"]) == ("50", "y")
    assert found["autoCreateTopicEnable"] == "false"


@pytest.mark.parametrize("acl", [False, True])
def test_what_is_reserved_is_what_is_decided(acl: bool) -> None:
    bare = properties(FleetSpec(acl=acl), "broker-a")
    assert acl == ("initAuthenticationUser" in bare)
    auth = {key for key in RESERVED_PROPERTIES if "uth" in key}
    assert set(bare) >= RESERVED_PROPERTIES - (set() if acl else auth)


def test_acls_reach_every_process_that_must_sign() -> None:
    spec = FleetSpec(acl=True, slave=True, proxy=True)
    inner = {"accessKey": "root", "secretKey": "s3cret-word"}
    for process in ("broker-a", "broker-a-slave"):
        found = properties(spec, process)
        assert found["authenticationEnabled"] == found["authorizationEnabled"] == "true"
        assert json.loads(found["innerClientAuthenticationCredentials"]) == inner
        assert json.loads(found["initAuthenticationUser"]) == {"username": "root", "password": "s3cret-word"}
    proxy = json.loads(plan(spec).files[LAYOUT.configuration / "proxy.json"])
    assert json.loads(proxy["innerClientAuthenticationCredentials"]) == inner
    assert proxy["enableAclRpcHookForClusterMode"] is True
    assert proxy["authenticationMetadataProvider"].endswith(".ProxyAuthenticationMetadataProvider")
    assert plan(spec).files[LAYOUT.home("mqadmin") / "conf" / "tools.yml"] == (
        'accessKey: "root"\nsecretKey: "s3cret-word"\n'
    )


def test_secrets_are_in_files_and_not_in_command_lines() -> None:
    made = plan(FleetSpec(acl=True, tls=True, slave=True, proxy=True))
    for process in made.processes.values():
        assert not any("s3cret-word" in word for word in process.argv)


def test_with_tls_servers_refuse_plain_text_and_clients_check_the_server() -> None:
    made = plan(FleetSpec(tls=True, proxy=True))
    for process in made.processes.values():
        assert "-Dtls.server.mode=enforcing" in process.argv
        assert "-Dtls.enable=true" in process.argv
    tls = parse_properties(made.files[LAYOUT.tls_properties])
    assert tls["tls.client.authServer"] == "true"
    assert tls["tls.server.need.client.auth"] == "none"
    mutual = parse_properties(plan(FleetSpec(tls=True, tls_client_auth=True)).files[LAYOUT.tls_properties])
    assert mutual["tls.server.need.client.auth"] == "require"
    assert mutual["tls.server.authClient"] == "true"


def test_without_tls_no_server_wastes_its_start_on_certificates() -> None:
    made = plan(FleetSpec(proxy=True))
    modes = {name: [word for word in process.argv if "tls" in word] for name, process in made.processes.items()}
    disabled = ["-Dtls.server.mode=disabled"]
    assert modes == {"name-server": disabled, "broker-a": disabled, "proxy": []}


def test_each_process_has_a_home_of_its_own() -> None:
    made = plan(FleetSpec(brokers=2, slave=True))
    homes = {word for process in made.processes.values() for word in process.argv if word.startswith("-Duser.home=")}
    assert len(homes) == len(made.processes) == 5


def test_a_large_heap_is_collected_for_throughput() -> None:
    assert {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} <= set(plan(FleetSpec()).processes["broker-a"].argv)
    large = plan(FleetSpec(heap="2g")).processes["broker-a"].argv
    assert "-Xmx2048m" in large
    assert "-XX:+UseG1GC" in large
    assert "-XX:TieredStopAtLevel=1" not in large


def test_the_proxy_serves_where_it_was_told() -> None:
    proxy = json.loads(plan(FleetSpec(proxy=True)).files[LAYOUT.configuration / "proxy.json"])
    assert (proxy["grpcServerPort"], proxy["remotingListenPort"]) == (20020, 20021)
    assert proxy["namesrvAddr"] == "127.0.0.1:20000"
