"""The environment variables that say how RocketMQ is reached, and in which pod we are: read by commands, consumers and
Spark readers, set in pods.
"""

from typing import Final

NAME_SERVERS_VARIABLE: Final = "ROCKETFLEET_NAME_SERVERS"
ACCESS_KEY_VARIABLE: Final = "ROCKETFLEET_ACCESS_KEY"
SECRET_KEY_VARIABLE: Final = "ROCKETFLEET_SECRET_KEY"  # noqa: S105 - the variable's name
SECURITY_TOKEN_VARIABLE: Final = "ROCKETFLEET_SECURITY_TOKEN"  # noqa: S105 - the variable's name
KEY_PASSWORD_VARIABLE: Final = "ROCKETFLEET_TLS_KEY_PASSWORD"  # noqa: S105 - the variable's name

POD_NAME_VARIABLE: Final = "POD_NAME"
POD_UID_VARIABLE: Final = "POD_UID"
