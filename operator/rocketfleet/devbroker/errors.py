"""What can go wrong with a development broker, each as one sentence that a user can act on."""


class DevBrokerError(Exception):
    """Something the user can act on, in a whole sentence. The command line prints it and exits with 1."""


class DownloadError(DevBrokerError):
    """A jar could not be fetched from Maven's repository."""


class JavaError(DevBrokerError):
    """There is no Java here, or it is too old."""


class PortError(DevBrokerError):
    """A port that is needed is taken."""


class ProbeError(DevBrokerError):
    """A server did not answer, or not in the remoting protocol, or it refused."""


class StartError(DevBrokerError):
    """A process died, or did not become ready in time, while it was being started."""
