"""Why a group's brokers cannot be asked, or do not answer as they should, in a word. Pure.

People act on the word: whoever reads BrokerUnreachable looks at the network and at the brokers, and would look in vain
for a topic that nobody has created.
"""

from enum import StrEnum

from rocketfleet.client.errors import NoNameServer, NoPermission, NoRoute, PartialFailure, RocketMQError


class BrokerTrouble(StrEnum):
    """The word, in conditions and events."""

    UNREACHABLE = "BrokerUnreachable"
    TOPIC_NOT_FOUND = "TopicNotFound"
    NO_PERMISSION = "NoPermission"
    CREDENTIALS = "CredentialsUnavailable"  # a Secret is missing or incomplete: nobody was asked

    @property
    def answered(self) -> bool:
        """Whether the name servers and brokers are there, and say no."""
        return self in (BrokerTrouble.TOPIC_NOT_FOUND, BrokerTrouble.NO_PERMISSION)


def hindrance_of(error: Exception) -> BrokerTrouble:
    """What an error on the way to the brokers means."""
    if isinstance(error, NoRoute):
        return BrokerTrouble.TOPIC_NOT_FOUND
    if isinstance(error, PartialFailure | NoNameServer):
        errors = list(error.errors.values())
        refused = bool(errors) and all(isinstance(one, NoPermission) for one in errors)
        return BrokerTrouble.NO_PERMISSION if refused else BrokerTrouble.UNREACHABLE
    if isinstance(error, NoPermission):
        return BrokerTrouble.NO_PERMISSION
    return BrokerTrouble.UNREACHABLE if isinstance(error, RocketMQError | TimeoutError) else BrokerTrouble.CREDENTIALS


def brokers_lost(known: frozenset[str], registered: frozenset[str]) -> str | None:
    """Why there is no way to a topic, if brokers are to blame; None: they are there, and the topic is not.

    A name server forgets the topics of a broker that is gone together with the broker. `known` are the brokers that
    had the group's queues when they were last seen.
    """
    if not registered:
        return "no broker is registered at the name servers"
    gone = sorted(known - registered)
    return f"not registered at the name servers: {', '.join(gone)}" if gone else None
