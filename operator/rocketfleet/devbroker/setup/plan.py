"""From what is wanted to what is run: the processes of a fleet, their flags and their files. Pure: no IO.

Each process has a home of its own below the fleet's directory, since RocketMQ puts logs below `user.home` and native
libraries below `java.io.tmpdir`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocketfleet.devbroker.distribution.java import LIGHT_FLAGS, MODULE_FLAGS
from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.config import (
    CLUSTER,
    CONTROLLER,
    LOOPBACK,
    NAME_SERVER,
    PROXY,
    FleetSpec,
    Layout,
    broker_name_of,
    heap_megabytes,
    is_slave,
)
from rocketfleet.wire.acl import Credentials


@dataclass(frozen=True)
class ProcessPlan:
    """One process: how it is started, and the words in its output that say it is up."""

    name: str
    argv: tuple[str, ...]
    ready_words: str


@dataclass(frozen=True)
class FleetPlan:
    processes: Mapping[str, ProcessPlan]
    files: Mapping[Path, str]
    """What must be written before the processes start; every file may hold a secret."""


@dataclass(frozen=True)
class PlanInputs:
    """What a plan needs to know besides the spec."""

    layout: Layout
    ports: Mapping[str, int]
    java: str
    classpath: str
    admin: Credentials | None = None


def plan_fleet(spec: FleetSpec, around: PlanInputs) -> FleetPlan:
    """The processes of a fleet and the files they read."""
    conf = around.layout.configuration
    files: dict[Path, str] = {}
    processes: dict[str, ProcessPlan] = {}
    if spec.tls:
        files[around.layout.tls_properties] = render(tls_properties(spec, around.layout))
    if around.admin is not None:
        # mqadmin reads its credentials from here; YAML's quoted form is JSON's.
        files[around.layout.home("mqadmin") / "conf" / "tools.yml"] = (
            f"accessKey: {json.dumps(around.admin.access_key)}\nsecretKey: {json.dumps(around.admin.secret_key)}\n"
        )
    for process in spec.processes:
        if process == PROXY:
            file = conf / "proxy.json"
            files[file] = json.dumps(proxy_configuration(spec, around), indent=2) + "\n"
            main, ready = ["org.apache.rocketmq.proxy.ProxyStartup", "-pc"], "startup successfully"
        elif process == NAME_SERVER:
            file = conf / f"{process}.properties"
            files[file] = render(name_server_properties(spec, around))
            main = ["org.apache.rocketmq.namesrv.NamesrvStartup", "-c"]
            ready = "ControllerManager boot success" if spec.controller else "boot success"
        else:
            file = conf / f"{process}.properties"
            files[file] = render(broker_properties(spec, around, process))
            main, ready = ["org.apache.rocketmq.broker.BrokerStartup", "-c"], "boot success"
        argv = (around.java, *jvm_flags(spec, around.layout, process), "-cp", around.classpath, *main, str(file))
        processes[process] = ProcessPlan(process, argv, ready)
    return FleetPlan(processes, files)


def jvm_flags(spec: FleetSpec, layout: Layout, process: str) -> tuple[str, ...]:
    """Heap, homes and module flags of a process; `mqadmin` is one as well."""
    home = layout.home(process)
    sizes: tuple[str, ...]
    if process.startswith("broker-"):
        megabytes = heap_megabytes(spec.heap)
        sizes = (f"-Xmx{megabytes}m", f"-XX:MaxDirectMemorySize={max(128, megabytes)}m")
        # A small heap is there for a quick start on a busy machine, a large one for throughput.
        sizes += LIGHT_FLAGS if megabytes < 1024 else ("-XX:+UseG1GC", "-XX:-UsePerfData")
    elif process == PROXY:
        sizes = ("-Xmx160m", "-XX:MaxDirectMemorySize=128m", *LIGHT_FLAGS)
    elif process == NAME_SERVER and spec.controller:
        # The controller's serializer looks into java.lang, and prints pages when it may not.
        sizes = ("-Xmx128m", *LIGHT_FLAGS, "--add-opens=java.base/java.lang=ALL-UNNAMED")
    else:
        sizes = ("-Xmx48m", *LIGHT_FLAGS)
    return (
        *sizes,
        "-XX:+ExitOnOutOfMemoryError",  # rather dead and seen than alive and deaf
        *MODULE_FLAGS,
        f"-Drocketmq.home.dir={home}",
        f"-Duser.home={home}",
        f"-Djava.io.tmpdir={home / 'tmp'}",
        *tls_flags(spec, layout, process),
        *(system_flags(spec) if process.startswith("broker-") else ()),
    )


def system_flags(spec: FleetSpec) -> tuple[str, ...]:
    """Properties named `rocketmq.…` are read by the broker from the JVM and not from its file."""
    return tuple(f"-D{key}={value}" for key, value in spec.properties if key.startswith("rocketmq."))


def tls_flags(spec: FleetSpec, layout: Layout, process: str) -> tuple[str, ...]:
    """With TLS: servers refuse plain text, clients speak TLS. Without: plain text only.

    RocketMQ's default is to accept both. For that, each server makes certificates of its own at every start, which
    takes as long as all the rest of its start. Only the proxy keeps it (with our certificate), since gRPC clients speak
    TLS unless told otherwise.
    """
    if not spec.tls:
        return () if process == PROXY else ("-Dtls.server.mode=disabled",)
    return (
        "-Dtls.server.mode=enforcing",
        "-Dtls.enable=true",
        f"-Dtls.config.file={layout.tls_properties}",
    )


def tls_properties(spec: FleetSpec, layout: Layout) -> dict[str, str]:
    tls = layout.tls
    return {
        "tls.test.mode.enable": "false",
        "tls.server.certPath": str(tls / certificates.SERVER),
        "tls.server.keyPath": str(tls / certificates.SERVER_KEY),
        "tls.server.trustCertPath": str(tls / certificates.CA),
        "tls.server.authClient": "true" if spec.tls_client_auth else "false",
        "tls.server.need.client.auth": "require" if spec.tls_client_auth else "none",
        "tls.client.certPath": str(tls / certificates.CLIENT),
        "tls.client.keyPath": str(tls / certificates.CLIENT_KEY),
        "tls.client.trustCertPath": str(tls / certificates.CA),
        "tls.client.authServer": "true",
    }


def name_server_properties(spec: FleetSpec, around: PlanInputs) -> dict[str, str]:
    """The name server's properties; with a controller, that runs in the same process, a group of one."""
    properties = {"bindAddress": LOOPBACK, "listenPort": str(around.ports[NAME_SERVER])}
    if spec.controller:
        properties |= {
            "enableControllerInNamesrv": "true",
            "controllerType": "DLedger",
            "controllerDLegerGroup": "controller",
            "controllerDLegerPeers": f"n0-{LOOPBACK}:{around.ports[CONTROLLER]}",
            "controllerDLegerSelfId": "n0",
            "controllerStorePath": str(around.layout.data / CONTROLLER),
        }
    return properties


def broker_properties(spec: FleetSpec, around: PlanInputs, process: str) -> dict[str, str]:
    """A broker's properties for one machine: loopback, and what a developer expects to just work."""
    port = around.ports[process]
    store = around.layout.data / process
    slave = is_slave(process)
    properties = {
        "brokerRole": "ASYNC_MASTER",
        "defaultTopicQueueNums": "8",
        "diskMaxUsedSpaceRatio": "95",
        "enablePropertyFilter": "true",  # SQL92 subscriptions
        # The least that a broker accepts, so that it is found again soon after the name server restarts.
        "registerNameServerPeriod": "10000",
        # After its first transaction a 5.5.0 broker burns a core: the thread that notes ended transactions in batches
        # takes a queue with nothing to note for overdue, always. Noting each at once, it sleeps for the interval.
        "transactionOpMsgMaxSize": "1",
        "transactionOpBatchInterval": "3600000",
        # The thread that saves transactions' figures spins for this long before its first time: 3 s of a core, else.
        "transactionMetricFlushInterval": "200",
        # A flush compares all 38 MB of the timer wheel byte by byte: every second, that is a third of a core (C1). What
        # a crash takes with it is read again from the timer log.
        "timerFlushIntervalMs": "60000",
        **{key: value for key, value in spec.properties if not key.startswith("rocketmq.")},
        "brokerClusterName": CLUSTER,
        "brokerName": broker_name_of(process),
        "brokerId": "1" if slave else "0",
        "brokerIP1": LOOPBACK,
        "brokerIP2": LOOPBACK,
        "bindAddress": LOOPBACK,
        "listenPort": str(port),
        "haListenPort": str(port + 1),
        "namesrvAddr": f"{LOOPBACK}:{around.ports[NAME_SERVER]}",
        "storePathRootDir": str(store),
        "storePathCommitLog": str(store / "commitlog"),
        "autoCreateTopicEnable": _flag(spec.auto_create_topics),
        "autoCreateSubscriptionGroup": _flag(spec.auto_create_groups),
        **_auth(around.admin),
    }
    if slave:
        properties["brokerRole"] = "SLAVE"
    if spec.controller:
        properties |= {
            "enableControllerMode": "true",
            "controllerAddr": f"{LOOPBACK}:{around.ports[CONTROLLER]}",
            # Both are decided by the controller; until then a replica is nobody's master.
            "brokerRole": "SLAVE",
            "brokerId": "-1",
        }
    return properties


def proxy_configuration(spec: FleetSpec, around: PlanInputs) -> dict[str, object]:
    port = around.ports[PROXY]
    configuration: dict[str, object] = {
        "rocketMQClusterName": CLUSTER,
        "proxyMode": "CLUSTER",
        "namesrvAddr": f"{LOOPBACK}:{around.ports[NAME_SERVER]}",
        "grpcServerPort": port,
        "remotingListenPort": port + 1,
        "localServeAddr": LOOPBACK,
        "tlsTestModeEnable": False,
        "tlsKeyPath": str(around.layout.tls / certificates.SERVER_KEY),
        "tlsCertPath": str(around.layout.tls / certificates.SERVER),
    }
    if around.admin is not None:
        configuration["enableAclRpcHookForClusterMode"] = True  # or the proxy does not sign what it sends to brokers
    for key, value in _auth(around.admin, proxy=True).items():
        configuration[key] = {"true": True, "false": False}.get(value, value)
    return configuration


def _auth(admin: Credentials | None, *, proxy: bool = False) -> dict[str, str]:
    """ACL 2.0: users and rules live in the brokers' own stores; the proxy asks a broker."""
    if admin is None:
        return {}
    package = "org.apache.rocketmq.auth"
    metadata = (
        "org.apache.rocketmq.proxy.auth.Proxy{}MetadataProvider"
        if proxy
        else package + ".{}.provider.Local{}MetadataProvider"
    )
    properties = {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProvider": f"{package}.authentication.provider.DefaultAuthenticationProvider",
        "authorizationProvider": f"{package}.authorization.provider.DefaultAuthorizationProvider",
        "authenticationMetadataProvider": metadata.format(
            *(["Authentication"] if proxy else ["authentication", "Authentication"])
        ),
        "authorizationMetadataProvider": metadata.format(
            *(["Authorization"] if proxy else ["authorization", "Authorization"])
        ),
        # What a broker sends to another one (a slave to its master), and the proxy to brokers, is signed with this.
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": admin.access_key, "secretKey": admin.secret_key}
        ),
    }
    if not proxy:
        properties["initAuthenticationUser"] = json.dumps({"username": admin.access_key, "password": admin.secret_key})
    return properties


def render(properties: Mapping[str, str]) -> str:
    """A Java properties file. In values, a backslash begins an escape; what is not Latin-1 must be escaped."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\")
    if escaped.startswith(" "):
        escaped = "\\" + escaped
    return "".join(letter if " " <= letter <= "~" else _unicode_escapes(letter) for letter in escaped)


def _unicode_escapes(letter: str) -> str:
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def _flag(value: bool) -> str:
    return "true" if value else "false"
