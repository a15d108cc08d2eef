"""Loads pages and rebuilds caches by PHP's command line. A place is a store on a storage."""
import os
import shutil
import signal
import statistics
import subprocess
import time

import pages as page_cache_of
from servers import Failed, program

# Pages of the site, which take turns. They use the first half of its templates, which include others.
PAGES = 10
WARM_UPS = 2
FILES = "files"
OURS = "eyewall (PHP)"
# A path, or a name in the folder that PHP has for extensions.
EXTENSION = os.environ.get("EYEWALL_PHP_EXTENSION", "eyewall")


class Ground:
    """The site, and the folders of its caches. Each place has a folder for everything that it writes."""

    def __init__(self, site, folders, stores):
        self.site, self.disk = site, folders["disk"]
        self.caches = {(store, storage): folder / f"cache-of-{number}" for storage, folder in folders.items()
                       for number, store in enumerate(stores)}
        self.php = program("php")
        for cache in self.caches.values():
            make_cache(cache)

    def command(self, place, opcode_cache, *script):
        """PHP without the machine's own settings."""
        cache = self.caches[place]
        settings = {"sys_temp_dir": f"{cache}/temporary", "display_errors": "stderr"}
        if place[0] == OURS:
            settings["extension"] = EXTENSION
        if opcode_cache == "on":
            # Processes of the command line share no memory. They share only the opcode cache's files.
            settings |= {"zend_extension": "opcache", "opcache.enable_cli": 1, "opcache.file_cache": f"{cache}/opcodes",
                         "opcache.file_cache_only": 1}
        options = [word for name, value in settings.items() for word in ("-d", f"{name}={value}")]
        return [self.php, "-n", *options, *map(str, script)]


def make_cache(cache):
    for name in ("temporary", "opcodes"):
        (cache / name).mkdir(parents=True, exist_ok=True)


def store_word(store):
    """The site's name for a store."""
    return "eyewall" if store == OURS else "files"


def has_extension():
    """Whether PHP can load the extension."""
    command = [program("php"), "-n", "-d", f"extension={EXTENSION}", "-r", "exit((int) !extension_loaded(\"eyewall\"));"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def version():
    told = subprocess.run([program("php"), "-n", "-v"], capture_output=True, text=True, check=False).stdout.split()
    return " ".join(told[:2])


def prepare(ground):
    """Builds the caches, checks that the site gives the same page in all places, and warms the places that have to be warm."""
    said = set()
    for place in ground.caches:
        rebuilds(ground, place, "write and rename", 1)
        for opcode_cache in ("off", "on"):
            for page in range(PAGES):
                done = subprocess.run(ground.command(place, opcode_cache, ground.site / "page.php", page), text=True,
                                      env=_environment(ground, place), capture_output=True, check=False)
                if done.returncode != 0 or done.stderr:
                    raise Failed(f"the site's page failed: {done.stderr.strip() or done.stdout.strip()[:500]}")
                if page == 0:
                    said.add(done.stdout)
    if len(said) != 1 or not said.pop().rstrip().endswith("</section>"):
        raise Failed("the site's first page is not the same, or not whole, in all places")


def pages(ground, place, opcode_cache, page_cache, runs):
    """The median time of page loads in seconds, from PHP's start to its end."""
    cache = ground.caches[place]
    if page_cache == "warm":
        for page in range(WARM_UPS):
            _seconds(ground, place, opcode_cache, page)
    taken = []
    for run in range(runs):
        if page_cache == "cold":
            page_cache_of.drop(ground.site, cache)
        taken.append(_seconds(ground, place, opcode_cache, run % PAGES))
    return statistics.median(taken)


def rebuilds(ground, place, way, runs):
    """The median time of rebuilds in seconds. One rebuild before them isn't counted."""
    done = subprocess.run(ground.command(place, "off", ground.site / "rebuild.php", way, runs + 1), env=_environment(ground, place),
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        raise Failed(f"the rebuild failed: {done.stderr.strip() or done.returncode}")
    return statistics.median(int(line) / 1e9 for line in done.stdout.split()[1:])


def after_restart(ground, place):
    """The seconds of the first page after a restart: no file is in memory, and caches in shared memory are gone."""
    cache = ground.caches[place]
    if place[1] == "shm":
        shutil.rmtree(cache)
        make_cache(cache)
    page_cache_of.drop(ground.site, cache)
    return _seconds(ground, place, "off", 0)


def _environment(ground, place):
    return {"SITE_CACHE": str(ground.caches[place]), "SITE_STORE": store_word(place[0]), "PATH": os.environ.get("PATH", "")}


def _seconds(ground, place, opcode_cache, page):
    command = ground.command(place, opcode_cache, ground.site / "page.php", page)
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, _environment(ground, place), file_actions=nowhere)
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
