#!/usr/bin/env python3
"""The procedure `storage`: a PHP site whose caches lie on the disk or in shared memory (bench/drivers/README.md).

The driver itself lets storages, ways and conditions take turns: the suite requests all repetitions at once.
"""
import contextlib
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "python"), str(ROOT / "scripts/common.d")]
import apache  # noqa: E402
import loads  # noqa: E402
import neighbour  # noqa: E402
import pages  # noqa: E402
import protocol  # noqa: E402
import site_of_php  # noqa: E402
from loads import FILES, OURS  # noqa: E402
from protocol import answer, refuse  # noqa: E402
from servers import Failed  # noqa: E402

# The way to replace a file that a volume also has: whole, and at once.
RENAME = "write and rename"
PARAMETERS = {
    "storage": ("disk", "shm"), "page_cache": ("warm", "cold"), "neighbour": ("quiet", "busy"), "opcode_cache": ("off", "on"),
    "way": ("truncate", "delete and write", RENAME),
}
SETTINGS = ("blocks", "loads_warm", "loads_cold", "loads_busy", "requests_quiet", "requests_busy",
            "rebuilds_quiet", "rebuilds_busy")


def absences():
    """Why stores aren't available here, by name."""
    found = {}
    if shutil.which("php") is None:
        found[FILES] = found[OURS] = "php is missing (apt install php-cli)"
    elif not loads.has_extension():
        found[OURS] = f"PHP has no extension {loads.EXTENSION} (bindings/php/README.md; EYEWALL_PHP_EXTENSION is its path)"
    return found


def list_stores():
    absent = absences()
    for name in (FILES, OURS):
        answer({"store": name, "absent": absent[name]} if name in absent else
               {"store": name, "kind": "other", "version": loads.version()})


def check(request):
    if request.get("procedure") != "storage":
        refuse("\"procedure\" has to be storage")
    protocol.check_turns(request, {FILES, OURS})
    settings = request.get("settings")
    for name in SETTINGS:
        if not isinstance(settings, dict) or not isinstance(settings.get(name), int) or settings[name] < 1:
            refuse(f"settings: {name} has to be a whole number from 1 on; bench/workloads/storage.toml has them")
    if not isinstance(request.get("seed"), int):
        refuse("\"seed\" has to be a whole number")
    chosen = {**request.get("parameters", {}), **{name: [value] for name, value in request.get("case", {}).items()}}
    for name, known in PARAMETERS.items():
        values = chosen.get(name)
        if not isinstance(values, list) or not values or not set(values) <= set(known):
            refuse(f"parameters: {name} has to be a list of some of {', '.join(known)}")
    return chosen


class Measuring:
    """The work of one request."""

    def __init__(self, request, chosen, ground, servers, stores):
        self.settings, self.repetitions, self.asked = request["settings"], request["repetitions"], request.get("case", {})
        self.chosen, self.ground, self.servers, self.stores = chosen, ground, servers, stores
        self.is_cold_possible = "cold" not in chosen["page_cache"] or self._can_be_cold()
        self.failed = set()

    def _can_be_cold(self):
        left = pages.drop(self.ground.site)
        if left > pages.LEFT_MOST:
            answer({"note": f"a cold page cache and a restart are skipped: the kernel kept {left:.0%} of what it was told to "
                            "drop (posix_fadvise)"})
        return left <= pages.LEFT_MOST

    def all(self):
        for number, repetition in enumerate(self.repetitions, 1):
            for condition in self.chosen["neighbour"]:
                with neighbour.beside(self.ground.disk, condition == "busy"):
                    for block in range(self.settings["blocks"]):
                        answer({"progress": f"trial {number} of {len(self.repetitions)}, neighbour {condition}, "
                                            f"block {block + 1} of {self.settings['blocks']}"})
                        self.block(repetition, condition, self.turns(repetition + block))

    def turns(self, number):
        """The places. Each storage, and each store, comes first in every second block."""
        places = [(store, storage) for storage in self.chosen["storage"] for store in self.stores]
        return places if number % 2 == 0 else places[::-1]

    def block(self, repetition, condition, places):
        kind = "busy" if condition == "busy" else "quiet"
        for opcode_cache in self.chosen["opcode_cache"]:
            for page_cache in self.chosen["page_cache"]:
                for place in places if page_cache == "warm" or self.is_cold_possible else ():
                    case = {"storage": place[1], "page_cache": page_cache, "neighbour": condition, "opcode_cache": opcode_cache}
                    runs = self.settings["loads_busy" if kind == "busy" else f"loads_{page_cache}"]
                    self.sample("load", repetition, place, case, loads.pages, self.ground, place, opcode_cache, page_cache, runs)
            for place in places if self.servers else ():
                case = {"storage": place[1], "neighbour": condition, "opcode_cache": opcode_cache}
                self.sample("requests", repetition, place, case, self.servers[*place, opcode_cache].rate, self.settings[f"requests_{kind}"])
        for way in self.chosen["way"]:
            for place in places if way == RENAME else [place for place in places if place[0] == FILES]:
                case = {"storage": place[1], "neighbour": condition, "way": way}
                self.sample("rebuild", repetition, place, case, loads.rebuilds, self.ground, place, way, self.settings[f"rebuilds_{kind}"])
        for place in places if self.is_cold_possible else ():
            case = {"storage": place[1], "neighbour": condition}
            self.sample("restart", repetition, place, case, loads.after_restart, self.ground, place)

    def sample(self, measure, repetition, place, case, take, *given):
        try:
            value = take(*given)
        except Failed as failure:
            # Reported once for each case, since work that fails in one block also fails in the next.
            key = (place[0], measure, *case.values())
            if key not in self.failed:
                answer({"note": f"{', '.join(map(str, key))}: {failure}"})
            self.failed.add(key)
            return
        added = {name: of for name, of in case.items() if name not in self.asked}
        answer({"sample": {"store": place[0], "measure": measure, "repetition": repetition, "value": value, "case": added}})


def measure(request):
    chosen, absent = check(request), absences()
    for name in request["stores"]:
        if name in absent:
            answer({"store": name, "absent": absent[name]})
    stores = [name for name in request["stores"] if name not in absent]
    if not stores:
        return
    with contextlib.ExitStack() as stack:
        folders = {}
        for storage in ("disk", "shm"):
            parent = protocol.scratch(request, storage)
            folders[storage] = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storage-", dir=parent)))
        site = site_of_php.write(folders["disk"] / "site", request["seed"])
        ground = loads.Ground(site, folders, stores)
        try:
            loads.prepare(ground)
            Measuring(request, chosen, ground, servers_of(ground, folders, chosen, stack), stores).all()
        except (Failed, OSError) as failure:
            answer({"note": f"{stores[0]}: {failure}"})


def servers_of(ground, folders, chosen, stack):
    """Apaches in front of the site; none if they aren't available."""
    try:
        return apache.start(ground, folders, chosen, stack)
    except apache.Missing as missing:
        answer({"note": f"requests to Apache are skipped: {missing}"})
        return {}


def main():
    request = protocol.request("list", "measure")
    if request["do"] == "list":
        list_stores()
    else:
        measure(request)


protocol.end_by_signals()
main()
