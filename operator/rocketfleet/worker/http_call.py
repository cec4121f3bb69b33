"""A call from the parent process to the control port of a child, on this machine."""

import asyncio

from rocketfleet.worker.http import BadRequest, Response, parse_answer
from rocketfleet.worker.port import LOOPBACK

_LONGEST_ANSWER = 32 << 20


class CallFailed(Exception):  # noqa: N818 - said in the past tense, as it is told
    """There was no usable answer; the message says why."""


async def call(port: int, method: str, path: str, token: str, limit: float) -> Response:
    """Ask once, and wait at most `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                lines = (f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}:{port}", f"Authorization: Bearer {token}")
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                data = bytearray()
                while chunk := await reader.read(1 << 16):
                    data += chunk
                    if len(data) > _LONGEST_ANSWER:
                        raise CallFailed(f"{path} answered more than {_LONGEST_ANSWER >> 20} MiB")
            finally:
                writer.close()
        return parse_answer(bytes(data))
    except TimeoutError:
        raise CallFailed(f"{path} was not answered within {limit:g} s") from None
    except OSError as error:
        raise CallFailed(f"{path} could not be called: {error.strerror or error}") from error
    except BadRequest as error:
        raise CallFailed(f"{path}: {error}") from error
