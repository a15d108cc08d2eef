"""Our own programs: those that the environment names, or else built ones."""
import functools
import os
import pathlib
import subprocess

from servers import Failed

ROOT = pathlib.Path(__file__).resolve().parents[3]

# The package of each program.
PACKAGES = {"eyewall": "eyewall-cli", "bench-http": "eyewall-bench-http", "bench-frameworks": "eyewall-bench-frameworks"}


class Programs:
    """EYEWALL_PROGRAM, BENCH_HTTP_PROGRAM and BENCH_FRAMEWORKS_PROGRAM name programs to measure instead of building them."""

    def eyewall_is_named(self):
        return bool(os.environ.get("EYEWALL_PROGRAM"))

    @functools.cache
    def eyewall(self):
        return _named(os.environ.get("EYEWALL_PROGRAM")) or _built("eyewall")

    @functools.cache
    def bench_http(self):
        return _named(os.environ.get("BENCH_HTTP_PROGRAM")) or _built("bench-http")

    @functools.cache
    def bench_frameworks(self):
        return _named(os.environ.get("BENCH_FRAMEWORKS_PROGRAM")) or _built("bench-frameworks")


def _named(given):
    if not given:
        return None
    path = pathlib.Path(given).resolve()
    if not os.access(path, os.X_OK) or not path.is_file():
        raise Failed(f"{path} is no program")
    return path


def _built(name):
    locked = ["--locked"] if os.environ.get("CI") else []
    build = ["cargo", "build", *locked, "--release", "--package", PACKAGES[name], "--bin", name]
    try:
        code = subprocess.run(build, cwd=ROOT, check=False).returncode
    except FileNotFoundError:
        raise Failed(f"{name} can't be built: cargo is missing") from None
    if code != 0:
        raise Failed(f"{name} could not be built")
    return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / name).resolve()
