"""The recorder: keeps what handlers and the traffic write down, where no fault of a test can reach it.

One port, two kinds of talk. A line `SCENE {"event": …}` is a record: it gets the time of its arrival, is written, and
then answered with an empty line; who waits for the answer knows that it is kept, and two records that follow from each
other are in order whatever clocks the nodes have. An HTTP `GET /SCENE` is answered with all records of a scene.
"""

import asyncio
import os
import re
import time
from pathlib import Path

DIRECTORY = Path(os.environ.get("RECORDS", "/records"))
PORT = int(os.environ.get("RECORDER_BIND_PORT", "8080"))
SCENE = re.compile(r"[a-z0-9-]{1,63}")


class Records:
    """A file a scene, open for appending."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, int] = {}

    def add(self, scene: str, record: str) -> None:
        file = self._files.get(scene)
        if file is None:
            file = self._files[scene] = os.open(self._path(scene), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f'{{"time": {time.time()!r}, {record.strip()[1:]}\n'.encode())

    def all(self, scene: str) -> bytes:
        path = self._path(scene)
        return path.read_bytes() if path.exists() else b""

    def _path(self, scene: str) -> Path:
        if not SCENE.fullmatch(scene):
            raise ValueError(f"{scene!r} names no scene")
        return self._directory / f"{scene}.jsonl"


async def serve(records: Records, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := (await reader.readline()).decode():
            first, _, rest = line.partition(" ")
            if first == "GET":
                while (await reader.readline()).strip():
                    pass
                content = records.all(name) if (name := rest.split()[0].strip("/")) else b"ok\n"
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + content)
                await writer.drain()
                return
            records.add(first, rest)
            writer.write(b"\n")
            await writer.drain()
    except (ConnectionError, ValueError):
        pass  # a pod was killed while it talked; half a line is no record
    finally:
        writer.close()


async def main() -> None:
    records = Records(DIRECTORY)
    server = await asyncio.start_server(lambda r, w: serve(records, r, w), "0.0.0.0", PORT)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
