"""What bytes from a peer can be wrong about.

Everything this package raises on bad input is a `WireError`: a caller that reads from a socket catches that one class,
and a fuzzer holds the package to it. Each subclass names the layer that gave up, from the outside in.
"""


class WireError(ValueError):
    """Bytes that are not what the protocol says, or a value the protocol cannot carry."""


class FrameError(WireError):
    """The stream is not a sequence of RocketMQ frames. Nothing after this point can be trusted: close the connection.

    `frames` holds the complete frames that came before the bad bytes in the same chunk, so what a caller sees does not
    depend on how the stream was cut into chunks.
    """

    def __init__(self, message: str, frames: tuple[memoryview, ...] = ()) -> None:
        super().__init__(message)
        self.frames = frames


class CommandError(WireError):
    """A frame whose header cannot be read, or a command that cannot be written."""


class MessageError(WireError):
    """A message that cannot be read from, or written to, its stored form."""


class BodyError(WireError):
    """A command's body is not the JSON, or not the shape of JSON, that its code promises."""
