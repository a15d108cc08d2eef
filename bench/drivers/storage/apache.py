"""Apache with mod_php on the site: a server for each store and storage, with and without the opcode cache, and ab as the client."""
import os
import pathlib
import pwd
import re
import shutil
import stat
import string
import subprocess

import loads
from servers import Failed, Server, free_port, program

HERE = pathlib.Path(__file__).resolve().parent
MODULES = pathlib.Path("/usr/lib/apache2/modules")
# The user of Apache's children if root starts it.
USER = "www-data"
CONCURRENCY = 4
WARM_UPS = 20
STARTS = 3


class Missing(Exception):
    """Why this part isn't available here."""


class Site:
    """A running Apache for the site."""

    def __init__(self, server):
        self.server = server

    def rate(self, count):
        """Requests for one page in a second, by ab. A failed request is an error."""
        command = [program("ab"), "-q", "-n", str(count), "-c", str(min(CONCURRENCY, count)), f"{self.server.url}/page.php?page=0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = dict(re.findall(r"^(Requests per second|Failed requests|Complete requests|Non-2xx responses): +([\d.]+)", done.stdout, re.M))
        is_good = found.get("Failed requests") == "0" and found.get("Complete requests") == str(count) and "Non-2xx responses" not in found
        if done.returncode != 0 or not is_good:
            raise Failed(f"ab: {done.stderr.strip() or found or 'it said nothing'}")
        return float(found["Requests per second"])


def start(ground, folders, chosen, stack):
    """The servers, by store, storage and opcode cache, if they can start. They stop with the stack."""
    module = _module()
    is_root = os.geteuid() == 0
    if is_root:
        _open_way(folders.values())
    sites = {}
    for place in ground.caches:
        if place[1] not in chosen["storage"]:
            continue
        for opcode_cache in chosen["opcode_cache"]:
            name = f"apache-{loads.store_word(place[0])}-{place[1]}-{opcode_cache}"
            folder, cache = ground.disk / name, folders[place[1]] / f"cache-{name}"
            folder.mkdir()
            loads.make_cache(cache)
            if is_root:
                for path in (cache, *cache.iterdir()):
                    shutil.chown(path, USER, USER)
            values = {"module": module, "modules": MODULES, "site": ground.site, "folder": folder, "cache": cache,
                      "opcache": 1 if opcode_cache == "on" else 0, "user": USER, "store": loads.store_word(place[0]),
                      "extension": f"extension = {loads.EXTENSION}" if place[0] == loads.OURS else ""}
            site = Site(_started(name, folder, values))
            stack.callback(site.server.stop)
            site.rate(WARM_UPS)
            sites[*place, opcode_cache] = site
    return sites


def _module():
    for name, package in (("apache2", "apache2-bin"), ("ab", "apache2-utils")):
        try:
            program(name)
        except Failed as failure:
            raise Missing(f"{failure} (apt install --no-install-recommends {package})") from None
    found = sorted(MODULES.glob("libphp*.so"))
    if not found:
        raise Missing("mod_php is missing (apt install --no-install-recommends libapache2-mod-php)")
    return found[-1]


def _open_way(folders):
    """Lets Apache's children, which aren't root, enter their directories."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        raise Missing(f"Apache's children are not to be root, and there is no user {USER} (apt install apache2-bin)") from None
    for folder in folders:
        # The scratch directory above also belongs to this run.
        for path in (folder, folder.parent):
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IXOTH)
        closed = [path for path in folder.parents if not path.stat().st_mode & stat.S_IXOTH]
        if closed:
            raise Missing(f"Apache's children are not root, and may not enter {closed[0]} (chmod o+x, or another scratch directory)")


def _started(name, folder, values):
    """A server on a free port. If another program takes the port meanwhile, it tries another one."""
    for left in reversed(range(STARTS)):
        values["port"] = free_port()
        for file in ("apache.conf", "php.ini"):
            (folder / file).write_text(string.Template((HERE / file).read_text()).substitute(values))
        command = [program("apache2"), "-DFOREGROUND", "-f", folder / "apache.conf"]
        try:
            return Server(name, command, folder, port=values["port"], environment={"PHP_INI_SCAN_DIR": ""})
        except Failed:
            if not left:
                raise
