"""The client id: the name under which the broker knows a member, its locks and its queues.

Two members with one id share their queues without knowing, the oldest trouble of RocketMQ in containers. In a pod the
id carries the pod's name, to be read by people, and its uid, so that no other pod ever has it. It stays the same when
the container restarts: the new process is the same member, and gets its locks again at once.
"""

from collections.abc import Mapping, MutableMapping

from rocketfleet.client.config import new_client_id
from rocketfleet.client.variables import POD_NAME_VARIABLE, POD_UID_VARIABLE

CLIENT_ID_VARIABLE = "ROCKETFLEET_CLIENT_ID"
PROCESSES_VARIABLE = "ROCKETFLEET_PROCESSES"
MADE_UP_VARIABLE = "ROCKETFLEET_WORKER_ID_MADE_UP"  # from a parent to its children, who are given an id either way


def choose_client_id(given: str | None, environment: Mapping[str, str]) -> str:
    """The id that was given, or one made from the pod's name and uid, or the client's own."""
    if given:
        return given
    name, uid = environment.get(POD_NAME_VARIABLE), environment.get(POD_UID_VARIABLE)
    if name and uid:
        return f"{name}@{uid}"
    return new_client_id()


def is_made_up(given: str | None, environment: MutableMapping[str, str]) -> bool:
    """Whether nobody chose the id. The variable is taken away: it is not for processes that we start."""
    return environment.pop(MADE_UP_VARIABLE, None) is not None or not given


def process_client_id(client_id: str, process: int) -> str:
    """The id of one of several processes."""
    return f"{client_id}#{process}"
