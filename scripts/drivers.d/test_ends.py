"""A driver that is told to end ends at once, and takes with it all that it has made and started."""
import json
import os
import pathlib
import signal
import subprocess
import time

import asked
import stage

PATIENCE_SECONDS = 60
MODULES, STORAGE = asked.definition("modules", is_quick=False), asked.definition("storage", is_quick=False)
PERL, PHP, PYTHON = MODULES["drivers"]
# Long enough for the signal to come first, whatever the machine does meanwhile.
LONG = {**MODULES["settings"], "seconds": 600, "keys": 200_000, "operations": 200_000}


class Ends(stage.OnScratch):
    def test_a_signal_leaves_neither_file_nor_process(self):
        for driver, name in ((PERL, "Cache::FastMmap"), (PERL, "memcached (Cache::Memcached::Fast)"), (PERL, "Cache::SharedMemoryCache"),
                             (PHP, "file-per-key (PHP)"), (PHP, "memcached (PHP)"), (PYTHON, "diskcache")):
            if "absent" in stage.listed(driver)[name]:
                continue
            case = {"values": "binary", "size": "medium", "configuration": "all fits"}
            request = asked.request({**MODULES, "settings": LONG}, "modules", self.scratch, case=case, stores=[name])
            # Ctrl-C reaches a driver twice: from the terminal, and from the suite, which it ends, too.
            for signals in ([signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGTERM]):
                with self.subTest(store=name, signals=[number.name for number in signals]):
                    self.expect_an_end(driver, request, signals, self.has_opened_a_store)

    def test_a_signal_stops_apache_and_the_neighbour(self):
        if "absent" in stage.listed(STORAGE["drivers"][0])["files"]:
            self.skipTest("php is missing")
        request = asked.request(STORAGE, "storage", self.scratch, stores=["files"])
        request["parameters"]["neighbour"] = ["busy"]
        self.expect_an_end(STORAGE["drivers"][0], request, [signal.SIGINT, signal.SIGTERM],
                           lambda _: any(self.scratch["disk"].glob("*/neighbour")))

    def has_opened_a_store(self, process):
        return any(self.scratch["shm"].glob("*/*")) or segments_of(process)

    def expect_an_end(self, driver, request, signals, is_under_way):
        process = subprocess.Popen(driver, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=asked.ROOT)
        self.addCleanup(process.kill)
        process.stdin.write(json.dumps(request).encode())  # tidy: word, the library's
        process.stdin.close()
        self.wait_until(lambda: is_under_way(process.pid))
        for number in signals:
            process.send_signal(number)
        self.assertIn(process.wait(PATIENCE_SECONDS), [128 + number for number in signals])
        self.expect_nothing_left()
        self.assertEqual([], processes_of(self.scratch))
        self.assertEqual([], segments_of(process.pid))

    def wait_until(self, is_so):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            self.assertLess(time.monotonic(), deadline, "the driver did not come to work")
            time.sleep(0.02)


def processes_of(scratch):
    """The command lines of processes that name one of the scratch directories."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if any(str(folder) in line for folder in scratch.values()):
                found.append(line)
    return found


def segments_of(process):
    """What System V knows of a process: the shared memory that it made, and semaphores under its number."""
    memory, semaphores = (
        [line.split() for line in pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]] for kind in ("shm", "sem"))
    return ([fields for fields in memory if int(fields[4]) == process]
            + [fields for fields in semaphores if int(fields[0]) == process])
