"""PHP's extension, built as in scripts/test-php, for the sites that use it.

EYEWALL_EXTENSION names one that is built already, and EYEWALL_PREFIX an installed libeyewall.
"""
import os
import pathlib
import shutil
import subprocess

from servers import Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
MISSING = "since phpize is missing, which builds PHP's extension (make packages)"


def built(scratch):
    """The file of the extension; None if phpize is missing."""
    given = os.environ.get("EYEWALL_EXTENSION")
    if given:
        return pathlib.Path(given).resolve()
    if shutil.which("phpize") is None:
        return None
    prefix = os.environ.get("EYEWALL_PREFIX")
    if not prefix:
        prefix = scratch / "prefix"
        _run([ROOT / "scripts/install-c", prefix], ROOT, os.environ | {"PROFILE": "dev"})
    folder = scratch / "extension"
    shutil.copytree(ROOT / "bindings/php/ext", folder)
    for command in (["phpize"], ["./configure", "--quiet", f"--with-eyewall={prefix}"], ["make", "--quiet"]):
        _run(command, folder)
    return folder / "modules/eyewall.so"


def _run(command, folder, environment=None):
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{pathlib.Path(command[0]).name} failed: {(done.stdout + done.stderr).strip()[-2000:]}")
