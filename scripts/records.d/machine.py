"""The machine that a record comes from and the sources that were measured, without names of the host or the user."""
import os
import pathlib
import platform
import re
import subprocess


def name_of(cpu, cores):
    """What records of one machine have in common, fit for a file's name."""
    words = re.sub(r"\(R\)|\(TM\)|processor|cpu|@.*", " ", cpu, flags=re.IGNORECASE).lower()
    return "-".join([*re.findall(r"[a-z0-9]+", words), f"{cores}cores"])


def look(places):
    """The machine as record.json has it; `places` are directories by the name that cases call their storage."""
    found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    cpu, cores = found[1] if found else platform.machine(), os.cpu_count()
    memory_kib = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    governor = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "name": name_of(cpu, cores), "cpu": cpu, "cores": cores, "memory_mib": memory_kib >> 10, "kernel": f"linux {platform.release()}",
        "storage": [{"name": name, "file_system": file_system(path), "device": None} for name, path in places.items()],
        "governor": governor.read_text().strip() if governor.exists() else None,
        "load_at_start": round(os.getloadavg()[0], 2), "noise": None,
    }


def file_system(path):
    """The kind of the file system that a path lies on."""
    best = ("", "unknown")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split(" ")
        # Blanks stand as octal numbers there; a directory of ours has none.
        if pathlib.Path(path).resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def commit():
    """The commit of the sources, and whether they differ from it; None without git."""
    def git(*arguments):
        try:
            return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()
        except FileNotFoundError:
            return ""

    head = git("rev-parse", "--short", "HEAD")
    return head + ("+changes" if git("status", "--porcelain") else "") if head else None
