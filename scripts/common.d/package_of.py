#!/usr/bin/env python3
"""package_of.py PROGRAM: prints the name of the workspace's package that has this program."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def package_of(program):
    """The package's name; None if no package has the program, or cargo is missing."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    try:
        told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    for package in json.loads(told)["packages"]:
        if any(target["name"] == program and "bin" in target["kind"] for target in package["targets"]):
            return package["name"]
    return None


if __name__ == "__main__":
    found = package_of(sys.argv[1])
    if found is None:
        sys.exit(f"package_of.py: no package of the workspace has the program {sys.argv[1]}")
    print(found)
