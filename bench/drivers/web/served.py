"""The files that web frameworks serve: makes them, and checks that a server sends them unchanged."""
import http.client
import random

from servers import Failed

SMALL = "small files"
# Numbers without a common divisor with the number of small files, so that sizes are mixed.
STRIDE = 617
# After two rounds, servers that store a file only at its second request have stored it, too.
LAPS = 2
PATIENCE_SECONDS = 60


class Files:
    """Files of a folder, named `0.bin` and so on, with bytes that don't compress."""

    def __init__(self, folder, sizes, seed):
        self.folder, self.sizes = folder, sizes
        self.folder.mkdir()
        content = random.Random(seed)
        for number, bytes_ in enumerate(sizes):
            (folder / f"{number}.bin").write_bytes(content.randbytes(bytes_))

    # The client replaces the placeholder by a number.
    path = "/files/{}.bin"

    @property
    def reference(self):
        return self.folder / "{}.bin"

    def check(self, server):
        """Checks that a server answers for each file with status 200, its length and its bytes, over one persistent connection."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        try:
            for _ in range(LAPS):
                for number in range(len(self.sizes)):
                    self._check_one(connection, number)
        finally:
            connection.close()

    def _check_one(self, connection, number):
        path, file = self.path.format(number), self.folder / f"{number}.bin"
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Failed(f"{path} is answered by {answer.status}")
        if answer.getheader("Content-Length") != str(file.stat().st_size):
            raise Failed(f"{path} is said to have {answer.getheader('Content-Length')} bytes, and has {file.stat().st_size}")
        if body != file.read_bytes():
            raise Failed(f"{path} is answered by other bytes than the file's")


def sizes_of(words, settings, bytes_of):
    """The size of each file of a case: one file of a given size, or many small ones, spread evenly over the logarithm of the size."""
    if words != SMALL:
        return [bytes_of(words)]
    count = settings["small_files"]
    smallest, largest = bytes_of(settings["smallest"]), bytes_of(settings["largest"])
    return [round(smallest * (largest / smallest) ** (number * STRIDE % count / max(count - 1, 1))) for number in range(count)]
