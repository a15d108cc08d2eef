#!/usr/bin/env python3
"""A neighbour that keeps the disk busy: writes blocks into a file and syncs each, until it is stopped or the program that started it is gone."""
import contextlib
import os
import subprocess
import sys

BLOCK_BYTES = 4 << 20
FILE_BLOCKS = 64


@contextlib.contextmanager
def beside(folder, is_busy):
    """If the disk has to be busy, runs a neighbour beside the work. Lets the disk come to rest afterwards."""
    if not is_busy:
        yield
        return
    path = folder / "neighbour"
    process = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE)
    try:
        # The neighbour writes a line when the first block is on the disk.
        process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        path.unlink(missing_ok=True)
        subprocess.run(["sync", "--file-system", folder], check=False)


def main(path):
    parent = os.getppid()
    block = os.urandom(BLOCK_BYTES)
    with open(path, "wb", buffering=0) as file:
        number = 0
        while os.getppid() == parent:
            os.pwrite(file.fileno(), block, number % FILE_BLOCKS * BLOCK_BYTES)
            os.fsync(file.fileno())
            if number == 0:
                print("busy", flush=True)
            number += 1


if __name__ == "__main__":
    main(sys.argv[1])
