"""As much of HTTP/1.1 as the control port speaks: one request, one answer, and the connection is closed.

Bytes in, bytes out, no sockets; `server.py` has those. Anything that is unusual is refused rather than guessed
at: two lengths, a chunked body, a folded header, a space before a colon.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Final

MAX_HEAD: Final = 8192
MAX_HEADERS: Final = 64
MAX_BODY: Final = 4096  # no call has a body that matters; what is sent is read and left unread

_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,1023}) HTTP/1\.[01]")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_ONCE: Final = frozenset({"authorization", "content-length", "host", "transfer-encoding"})
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`peer` is the caller's address, as far as it is known."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case
    peer: str = ""

    @property
    def content_length(self) -> int:
        return int(self.headers.get("content-length", "0"))


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class BadRequest(Exception):
    """What was sent is refused, with this status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def parse_head(head: bytes, peer: str = "") -> HttpRequest:
    """The request line and headers, without the empty line that ends them."""
    line, *rest = head.split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise BadRequest(400, "the first line is not that of an HTTP/1.1 request")
    if len(rest) > MAX_HEADERS:
        raise BadRequest(431, f"more than {MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for entry in rest:
        header = _HEADER.fullmatch(entry)
        if header is None:
            raise BadRequest(400, "a header is not of the form 'Name: value'")
        name, value = header[1].decode("ascii").lower(), header[2].decode("latin-1").strip()
        if name in headers and name in _ONCE:
            raise BadRequest(400, f"the header {name} was sent twice")
        headers[name] = value
    if "transfer-encoding" in headers:
        raise BadRequest(501, "send a body with its Content-Length, or none")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(400, "Content-Length is not a number")
    if len(length) > 9 or int(length) > MAX_BODY:
        raise BadRequest(413, f"a body of more than {MAX_BODY} bytes is not read")
    path = found[2].decode("ascii").partition("?")[0]
    return HttpRequest(found[1].decode("ascii"), path, headers, peer)


def encode_response(response: Response, *, with_body: bool = True) -> bytes:
    """The answer as it goes out. HEAD gets the same without its body."""
    lines = [
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unknown')}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        "Connection: close",
        "Cache-Control: no-store",
        *(f"{name}: {value}" for name, value in response.headers),
    ]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head + response.body if with_body else head


def text_response(status: int, text: str) -> Response:
    return Response(status, (text.rstrip("\n") + "\n").encode())


def json_response(status: int, content: object) -> Response:
    return Response(status, (json.dumps(content, ensure_ascii=False) + "\n").encode(), "application/json")


def parse_answer(data: bytes) -> Response:
    """What another worker's control port answered, read to its end."""
    head, separator, body = data.partition(b"\r\n\r\n")
    line, *rest = head.split(b"\r\n")
    parts = line.split(b" ", 2)
    if not separator or len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise BadRequest(500, "the answer is not HTTP")
    headers = {name.strip().lower(): value.strip() for name, _, value in (entry.partition(b":") for entry in rest)}
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) != len(body):
        raise BadRequest(500, f"the answer was cut off: {len(body)} of {int(length)} bytes")
    return Response(int(parts[1]), body, headers.get(b"content-type", b"text/plain").decode("latin-1"))
