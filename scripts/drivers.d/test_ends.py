"""A driver that is told to end ends at once, and takes with it all that it has made and started."""
import json
import os
import pathlib
import signal
import subprocess

import asked
import stage

MODULES, STORAGE = asked.definition("modules", is_quick=False), asked.definition("storage", is_quick=False)
PERL, PHP, PYTHON, LUA = MODULES["drivers"]
# Long enough for the signal to come first, whatever the machine does meanwhile.
LONG = {**MODULES["settings"], "seconds": 600, "keys": 200_000, "operations": 200_000}


class Ends(stage.OnScratch):
    def test_a_signal_leaves_neither_file_nor_process(self):
        for driver, name in ((PERL, "Cache::FastMmap"), (PERL, "memcached (Cache::Memcached::Fast)"), (PERL, "Cache::SharedMemoryCache"),
                             (PHP, "file-per-key (PHP)"), (PHP, "memcached (PHP)"), (PYTHON, "diskcache"),
                             (LUA, "eyewall (Lua)"), (LUA, "lua_shared_dict")):
            if "absent" in stage.listed(driver)[name]:
                continue
            case = {"values": "binary", "size": "medium", "configuration": "all fits"}
            request = asked.request({**MODULES, "settings": LONG}, "modules", self.scratch, case=case, stores=[name])
            # Ctrl-C reaches a driver twice: from the terminal, and from the suite, which it ends, too.
            for signals in ([signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGTERM]):
                with self.subTest(store=name, signals=[number.name for number in signals]):
                    self.expect_an_end(driver, request, signals, self.has_opened_a_store)

    def test_a_signal_ends_the_processes_that_share_a_store(self):
        workers = asked.definition("workers")
        for name in ("Hash::SharedMem", "memcached (Cache::Memcached::Fast)"):
            if "absent" in stage.listed(workers["drivers"][0])[name]:
                continue
            settings = {**workers["settings"], "seconds": 600}
            request = asked.request({**workers, "settings": settings}, "workers", self.scratch, case={"keys": "all"}, stores=[name])
            for signals in ([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]):
                with self.subTest(store=name, signals=[number.name for number in signals]):
                    self.expect_an_end(workers["drivers"][0], request, signals, self.has_opened_a_store)

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
        process = subprocess.Popen(driver, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=asked.ROOT, process_group=0)
        self.addCleanup(process.kill)
        process.stdin.write(json.dumps(request).encode())  # tidy: word, the library's
        process.stdin.close()
        group = os.getpgid(process.pid)
        stage.wait_until(self, lambda: is_under_way(process.pid))
        for number in signals:
            process.send_signal(number)
        self.assertIn(process.wait(stage.PATIENCE_SECONDS), [128 + number for number in signals])
        self.expect_nothing_left()
        self.assertEqual([], processes_of(self.scratch))
        self.assertEqual([], segments_of(process.pid))
        self.assertEqual([], others_of(group))


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


def others_of(group):
    """The processes of a group, but for those that have ended and are still listed."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(its_group) == group and state != "Z":
                found.append(entry.name)
    return found


def segments_of(process):
    """What System V knows of a process: the shared memory that it made, and semaphores under its number."""
    memory, semaphores = (
        [line.split() for line in pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]] for kind in ("shm", "sem"))
    return ([fields for fields in memory if int(fields[4]) == process]
            + [fields for fields in semaphores if int(fields[0]) == process])
