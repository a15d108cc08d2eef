"""The origin of all contenders: prints its address on the first line, and ends with its standard input.

/page/BYTES/NAME   an object of so many bytes, at once
/weak/BYTES/NAME   the same from a server that falls over: WORKERS at a time make one in WORK_SECONDS each, some wait, the
                   rest is refused by 503
/counts            how often each path was asked for, as JSON
"""
import asyncio
import collections
import email.utils
import json
import random
import sys

SEED = 20261121
WORKERS = 4
WORK_SECONDS = 0.05
WAITING_MAX = 16
BYTES_MAX = 64 << 20

counts = collections.Counter()
bodies = {}


class Weak:
    """The workers, and who waits for them."""

    def __init__(self):
        self.free = asyncio.Semaphore(WORKERS)
        self.waiting = 0

    async def works(self):
        """Whether a worker took the request."""
        if self.waiting >= WAITING_MAX:
            return False
        self.waiting += 1
        async with self.free:
            self.waiting -= 1
            await asyncio.sleep(WORK_SECONDS)
        return True


def body_of(size):
    if size not in bodies:
        bodies[size] = random.Random(SEED + size).randbytes(size)
    return bodies[size]


async def answer(path, weak):
    """Status, fields and body for a path."""
    parts = path.split("/")
    if path == "/counts":
        told = json.dumps(counts)  # tidy: word, the library's
        return "200 OK", "Cache-Control: no-store\r\n", told.encode()
    if len(parts) != 4 or parts[1] not in ("page", "weak") or not parts[2].isdigit() or int(parts[2]) > BYTES_MAX:
        return "404 Not Found", "", b""
    counts[path] += 1
    if parts[1] == "weak" and not await weak.works():
        return "503 Service Unavailable", "Cache-Control: no-store\r\n", b""
    fields = (
        "Content-Type: application/octet-stream\r\nCache-Control: max-age=3600\r\n"
        f'ETag: "{parts[2]}"\r\nLast-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n'
    )
    return "200 OK", fields, body_of(int(parts[2]))


async def serve(reader, writer, weak):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            _, path, version = head.split("\r\n", 1)[0].split(" ")
            closes = "connection: close" in head or (version == "http/1.0" and "connection: keep-alive" not in head)
            status, fields, body = await answer(path, weak)
            connection = "close" if closes else "keep-alive"
            date = email.utils.formatdate(usegmt=True)
            writer.write(
                f"HTTP/1.1 {status}\r\nDate: {date}\r\n{fields}Content-Length: {len(body)}\r\n"
                f"Connection: {connection}\r\n\r\n".encode("latin-1")
            )
            writer.write(body)
            await writer.drain()
            if closes:
                break
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


async def main():
    weak = Weak()
    server = await asyncio.start_server(lambda r, w: serve(r, w, weak), "127.0.0.1", 0, backlog=4096)
    print("origin on http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
