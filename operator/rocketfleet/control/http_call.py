"""A call to a worker's control port: by the parent process to its children, and by the controller to pods."""

import asyncio
import time

from rocketfleet.control.http import BadRequest, Response, parse_answer
from rocketfleet.control.proof import Proof

_LONGEST_ANSWER = 32 << 20
Credential = str | Proof | None  # a token is sent as it is; of a proof, what is good for this one call


class CallFailed(Exception):
    """There was no usable answer; the message says why."""


async def call(
    address: str, method: str, path: str, token: Credential, limit: float, *, now: float | None = None
) -> Response:
    """Ask once, and wait at most `limit` seconds. `now`: the time of day to prove it for."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(limit):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                lines = [f"{method} {path} HTTP/1.1", f"Host: {address}"]
                if isinstance(token, Proof):
                    lines.append(
                        f"Authorization: {token.authorization(method, path, time.time() if now is None else now)}"
                    )
                elif token:
                    lines.append(f"Authorization: Bearer {token}")
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                data = bytearray()
                while chunk := await reader.read(1 << 16):
                    data += chunk
                    if len(data) > _LONGEST_ANSWER:
                        raise CallFailed(f"{path} of {address} answered more than {_LONGEST_ANSWER >> 20} MiB")
            finally:
                writer.close()
        return parse_answer(bytes(data))
    except TimeoutError:
        raise CallFailed(f"{path} of {address} was not answered within {limit:g} s") from None
    except (OSError, ValueError, OverflowError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise CallFailed(f"{path} of {address} could not be called: {reason}") from error
    except BadRequest as error:
        raise CallFailed(f"{path} of {address}: {error}") from error
