"""The client id: the name under which the broker knows a member, its locks and its queues.

Two members with one id share their queues without knowing, the oldest trouble of RocketMQ in containers. In a pod the
id carries the pod's name, to be read by people, and its uid, so that no other pod ever has it. It stays the same when
the container restarts: the new process is the same member, and gets its locks again at once.
"""

from collections.abc import Mapping

from rocketfleet.client.config import new_client_id

POD_NAME_VARIABLE = "POD_NAME"
POD_UID_VARIABLE = "POD_UID"


def choose_client_id(given: str | None, environment: Mapping[str, str]) -> str:
    """The id that was given, or one made from the pod's name and uid, or the client's own."""
    if given:
        return given
    name, uid = environment.get(POD_NAME_VARIABLE), environment.get(POD_UID_VARIABLE)
    if name and uid:
        return f"{name}@{uid}"
    return new_client_id()


def process_client_id(client_id: str, process: int) -> str:
    """The id of one of several processes."""
    return f"{client_id}#{process}"
