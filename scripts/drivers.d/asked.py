"""Drivers asked as the suite asks them, from the definitions of bench/workloads."""
import json
import pathlib
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def definition(name, is_quick=True):
    """A workload as it holds for a run of that kind."""
    with open(ROOT / f"bench/workloads/{name}.toml", "rb") as file:
        read = tomllib.load(file)
    scale = "quick" if is_quick else "whole"
    read["settings"] = _settled(read["settings"], scale)
    read["repetitions"] = read["repetitions"][scale]
    for parameter in read["parameters"].values():
        quick = parameter.pop("quick", None)
        if is_quick and quick is not None:
            parameter["values"] = quick
    return read


def _settled(value, scale):
    if isinstance(value, dict):
        return value[scale] if value.keys() == {"whole", "quick"} else {key: _settled(inner, scale) for key, inner in value.items()}
    return value


def request(workload, name, scratch, **more):
    """A request to measure."""
    return {
        "do": "measure", "workload": name, "procedure": workload["procedure"], "case": {}, "settings": workload["settings"],
        "parameters": {key: parameter["values"] for key, parameter in workload["parameters"].items()},
        "stores": [], "repetitions": [1], "seed": workload["seed"], "quick": True,
        "scratch": {place: str(folder) for place, folder in scratch.items()}, **more,
    }


class Answer:
    """What a driver said."""

    def __init__(self, code, lines, words):
        self.code, self.lines, self.words = code, lines, words

    def of(self, kind):
        """The lines of one kind."""
        return [line[kind] for line in self.lines if kind in line]


def ask(driver, asked):
    """Asks a driver, given as its command line, and waits for its end."""
    text = asked if isinstance(asked, str) else json.dumps(asked)  # tidy: word, the library's
    done = subprocess.run(driver, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    return Answer(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)
