"""Pages loaded and caches rebuilt by PHP's command line."""
import os
import shutil
import signal
import statistics
import subprocess
import time

import pages as page_cache_of
from servers import Failed, program

# Pages of the site that take turns; of the first half of its templates, which include others.
PAGES = 10
WARM_UPS = 2


class Ground:
    """The site, and where its caches lie: everything that it writes is below one folder."""

    def __init__(self, site, folders):
        self.site, self.disk = site, folders["disk"]
        self.caches = {storage: folder / "cache" for storage, folder in folders.items()}
        self.php = program("php")
        for cache in self.caches.values():
            make_cache(cache)

    def command(self, cache, opcode_cache, *script):
        """PHP without the machine's own settings."""
        settings = {"sys_temp_dir": f"{cache}/temporary", "display_errors": "stderr"}
        if opcode_cache == "on":
            # Processes of the command line share no memory: what they share is the file form of the opcode cache.
            settings |= {"zend_extension": "opcache", "opcache.enable_cli": 1, "opcache.file_cache": f"{cache}/opcodes",
                         "opcache.file_cache_only": 1}
        options = [word for name, value in settings.items() for word in ("-d", f"{name}={value}")]
        return [self.php, "-n", *options, *map(str, script)]


def make_cache(cache):
    for name in ("temporary", "opcodes"):
        (cache / name).mkdir(parents=True, exist_ok=True)


def version():
    told = subprocess.run([program("php"), "-n", "-v"], capture_output=True, text=True, check=False).stdout.split()
    return " ".join(told[:2])


def prepare(ground):
    """Builds the caches, sees to it that the site gives the same page on both storages, and warms what is warm."""
    said = set()
    for storage, cache in ground.caches.items():
        rebuilds(ground, storage, "write and rename", 1)
        for opcode_cache in ("off", "on"):
            for page in range(PAGES):
                done = subprocess.run(ground.command(cache, opcode_cache, ground.site / "page.php", page), text=True,
                                      env=_environment(cache), capture_output=True, check=False)
                if done.returncode != 0 or done.stderr:
                    raise Failed(f"the site's page failed: {done.stderr.strip() or done.stdout.strip()[:500]}")
                if page == 0:
                    said.add(done.stdout)
    if len(said) != 1 or not said.pop().rstrip().endswith("</section>"):
        raise Failed("the site's first page is not the same, or not whole, on both storages")


def pages(ground, storage, opcode_cache, page_cache, runs):
    """The median of the seconds of page loads, from PHP's start to its end."""
    cache = ground.caches[storage]
    if page_cache == "warm":
        for page in range(WARM_UPS):
            _seconds(ground, cache, opcode_cache, page)
    taken = []
    for run in range(runs):
        if page_cache == "cold":
            page_cache_of.drop(ground.site, cache)
        taken.append(_seconds(ground, cache, opcode_cache, run % PAGES))
    return statistics.median(taken)


def rebuilds(ground, storage, way, runs):
    """The median of the seconds of rebuilds, of which one before them is not counted."""
    cache = ground.caches[storage]
    done = subprocess.run(ground.command(cache, "off", ground.site / "rebuild.php", way, runs + 1), env=_environment(cache),
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        raise Failed(f"the rebuild failed: {done.stderr.strip() or done.returncode}")
    return statistics.median(int(line) / 1e9 for line in done.stdout.split()[1:])


def after_restart(ground, storage):
    """The seconds of the first page after a restart: no file is in memory, and a cache in shared memory is gone."""
    cache = ground.caches[storage]
    if storage == "shm":
        shutil.rmtree(cache)
        make_cache(cache)
    page_cache_of.drop(ground.site, cache)
    return _seconds(ground, cache, "off", 0)


def _environment(cache):
    return {"SITE_CACHE": str(cache), "PATH": os.environ.get("PATH", "")}


def _seconds(ground, cache, opcode_cache, page):
    command = ground.command(cache, opcode_cache, ground.site / "page.php", page)
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, _environment(cache), file_actions=nowhere)
    try:
        _, status = os.waitpid(process, 0)
    except BaseException:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    taken = time.perf_counter() - start
    if status != 0:
        raise Failed(f"the page ended with {os.waitstatus_to_exitcode(status)}")
    return taken
