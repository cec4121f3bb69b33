"""A fleet as a document: what `--json` prints, for programs, and the same in a few lines, for people.

The secret of the administrator is never in it, only the file where it is.
"""

import socket
from typing import Any

from rocketfleet.devbroker.distribution.lock import VERSION
from rocketfleet.devbroker.errors import ProbeError
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.config import (
    CLUSTER,
    CONTROLLER,
    LOOPBACK,
    NAME_SERVER,
    PROXY,
    broker_name_of,
    is_slave,
)
from rocketfleet.wire.bodies import MASTER_ID
from rocketfleet.wire.codes import RequestCode


def describe(fleet: Fleet) -> dict[str, Any]:
    """Everything a program needs to use the fleet, and how each of its processes is."""
    found = fleet.known()
    spec, ports, layout = found.spec, found.ports, fleet.layout
    probe = Probe(fleet.admin_user, fleet.ssl_context() if spec.tls else None, timeout=2.0)
    living = found.living
    processes = {
        name: {
            "process": name,
            "pid": found.processes[name].pid if name in found.processes else None,
            "alive": name in living,
            "answers": name in living and _answers(probe, name, ports[name]),
        }
        for name in spec.processes
    }
    registered = _registered(probe, f"{LOOPBACK}:{ports[NAME_SERVER]}") if spec.controller else None
    tls, admin = layout.tls, fleet.admin_user
    return {
        "directory": str(layout.directory),
        "version": VERSION,
        "running": found.ready and len(living) == len(processes),
        "cluster": CLUSTER,
        "name_servers": [f"{LOOPBACK}:{ports[NAME_SERVER]}"],
        "name_server_processes": [processes[NAME_SERVER]],
        "brokers": [
            {
                "name": broker_name_of(name),
                **_role(name, f"{LOOPBACK}:{ports[name]}", registered),
                "address": f"{LOOPBACK}:{ports[name]}",
                **processes[name],
            }
            for name in spec.broker_processes
        ],
        "controller": f"{LOOPBACK}:{ports[CONTROLLER]}" if spec.controller else None,
        "proxy": {
            "grpc": f"{LOOPBACK}:{ports[PROXY]}",
            "remoting": f"{LOOPBACK}:{ports[PROXY] + 1}",
            **processes[PROXY],
        }
        if spec.proxy
        else None,
        "tls": {
            "ca": str(tls / certificates.CA),
            "client_certificate": str(tls / certificates.CLIENT),
            "client_key": str(tls / certificates.CLIENT_KEY),
            "client_certificate_required": spec.tls_client_auth,
        }
        if spec.tls
        else None,
        "acl": {"access_key": admin.access_key, "credentials_file": str(layout.credentials)} if admin else None,
        "java": found.java,
        "classpath": fleet.classpath,
    }


def render(document: dict[str, Any]) -> str:
    """The document for people."""
    rows = [("name server", document["name_servers"][0], document["name_server_processes"][0], "")]
    rows += [(broker["process"], broker["address"], broker, broker["role"]) for broker in document["brokers"]]
    if document["proxy"]:
        proxy = document["proxy"]
        rows.append(("proxy", proxy["grpc"], proxy, f"gRPC; remoting on {proxy['remoting']}"))
    width = max(len(name) for name, *_ in rows)
    lines = [f"RocketMQ {document['version']} in {document['directory']}"]
    for name, address, process, remark in rows:
        condition = (
            f"pid {process['pid']}" if process["answers"] else "does not answer" if process["alive"] else "not running"
        )
        lines.append(f"  {name:{width}}  {address:21}  {', '.join(part for part in (condition, remark) if part)}")
    if document["controller"]:
        lines.append(f"  a controller on {document['controller']}, in the name server, elects masters")
    if document["tls"]:
        lines.append(f"  TLS only; CA in {document['tls']['ca']}")
        if document["tls"]["client_certificate_required"]:
            lines.append(f"  a client certificate is required; one is in {document['tls']['client_certificate']}")
    if document["acl"]:
        lines.append(
            f"  ACL; administrator {document['acl']['access_key']}, secret in {document['acl']['credentials_file']}"
        )
    return "\n".join(lines)


def _registered(probe: Probe, name_server: str) -> dict[str, dict[int, str]]:
    try:
        return probe.registered_brokers(name_server)
    except ProbeError:
        return {}


def _role(process: str, address: str, registered: dict[str, dict[int, str]] | None) -> dict[str, Any]:
    """The id and role of a broker: by its name, or where a controller decides, as the name server knows them."""
    if registered is None:
        return {"id": 1, "role": "slave"} if is_slave(process) else {"id": MASTER_ID, "role": "master"}
    ids = registered.get(broker_name_of(process), {})
    found = next((number for number, at in ids.items() if at == address), None)
    return {"id": found, "role": None if found is None else "master" if found == MASTER_ID else "slave"}


def _answers(probe: Probe, process: str, port: int) -> bool:
    address = f"{LOOPBACK}:{port}"
    try:
        if process == PROXY:
            with socket.create_connection((LOOPBACK, port), probe.timeout):
                return True
        code = RequestCode.GET_BROKER_CLUSTER_INFO if process == NAME_SERVER else RequestCode.GET_BROKER_CONFIG
        return probe.call(address, code).code == 0
    except (ProbeError, OSError):
        return False
