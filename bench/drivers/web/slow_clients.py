"""slow_clients.py HOST PORT PATH COUNT: clients that each read BYTES_A_SECOND of an object, until standard input ends.

Prints "ready COUNT" when each client has the beginning of its response, or "failed WHY"; at its end "lost COUNT", the
number of clients whose connection ended before. It is a process of its own, so that its memory and time don't count as the server's.
"""
import select
import socket
import sys
import time

BYTES_A_SECOND = 1024
# A second has so many steps, and each client reads in one of them. So few read at once, like independent clients: a
# hundred in a row would keep the fast client from its core, and the server would seem slow.
STEPS = 1000
RECEIVE_BUFFER_BYTES = 4096
# The segment size of Ethernet. With the 64 KiB of the loopback interface the kernel would take the whole object from
# the server at once, and no server would have a slow client.
SEGMENT_BYTES = 1460
READY_SECONDS = 60


def connect(host, port, path):
    """A client that has sent its request, or None if its connection was refused."""
    client = socket.socket()
    # Set before connecting, since the window that the server sees depends on it.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
    client.settimeout(READY_SECONDS)
    client.connect((host, port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return client


def read(client):
    """Whether the connection is still open."""
    try:
        return client.recv(BYTES_A_SECOND) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def main():
    host, port, path, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    clients = []
    try:
        for _ in range(count):
            clients.append(connect(host, port, path))
        for client in clients:
            if not client.recv(BYTES_A_SECOND).startswith(b"HTTP/1.1 200"):
                raise OSError("an answer was not 200")
            client.setblocking(False)
    except OSError as error:
        print(f"failed after {len(clients)} of {count}: {error}", flush=True)
        return
    print(f"ready {len(clients)}", flush=True)

    lost = 0
    steps = [clients[at::STEPS] for at in range(STEPS)]
    began = time.monotonic()
    step = 0
    while True:
        pause = began + step / STEPS - time.monotonic()
        if select.select([sys.stdin], [], [], max(pause, 0))[0]:
            break
        there = [client for client in steps[step % STEPS] if read(client)]
        lost += len(steps[step % STEPS]) - len(there)
        steps[step % STEPS] = there
        step += 1
    print(f"lost {lost}", flush=True)


main()
