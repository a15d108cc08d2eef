"""The procedure `modules` in Python, for any stores and any way to measure them; bench/drivers/README.md describes it."""
import pathlib
import tempfile

import protocol
from protocol import answer, refuse
from values import Values

NUMBERS = ("keys", "operations", "rounds", "seconds", "stored_percent", "set_percent")


def run(stores, figures):
    """Answers the request on standard input. `figures(store, request, folder)` are those of one repetition, by measure."""
    protocol.end_by_signals()
    request = protocol.request("list", "measure", "vectors")
    if request["do"] == "list":
        for store in stores:
            answer(store.listed())
        return
    check_settings(request)
    if request["do"] == "vectors":
        answer({"vectors": Values(request).vectors()})
        return
    folder = check_measure(request, stores)
    for name in request["stores"]:
        measure(next(store for store in stores if store.name == name), figures, request, folder)


def check_settings(request):
    settings = request.get("settings")
    if not isinstance(settings, dict):
        refuse("\"settings\" are missing; bench/workloads/modules.toml has them")
    if not isinstance(request.get("seed"), int):
        refuse("\"seed\" has to be a whole number")
    for name in NUMBERS:
        if not isinstance(settings.get(name), (int, float)) or settings[name] <= 0:
            refuse(f"settings: {name} has to be a number above 0")
    for name in ("binary_bytes", "structured_fields", "configurations"):
        if not isinstance(settings.get(name), dict):
            refuse(f"settings: {name} has to be an object")


def check_measure(request, stores):
    """Checks that the request can be met. Returns the directory to work in."""
    if request.get("procedure") != "modules":
        refuse("\"procedure\" has to be modules")
    case, settings = request.get("case"), request["settings"]
    if not isinstance(case, dict):
        refuse("\"case\" has to be an object")
    if case.get("values") not in ("binary", "structured"):
        refuse(f"case: values is {case.get('values')!r}; it may be binary or structured")
    sizes = settings["binary_bytes" if case["values"] == "binary" else "structured_fields"]
    for name, choices in (("size", sizes), ("configuration", settings["configurations"])):
        if case.get(name) not in choices:
            refuse(f"case: {name} is none of {', '.join(choices)}")
        request[name] = choices[case[name]]
    protocol.check_turns(request, {store.name for store in stores})
    return protocol.scratch(request, settings.get("storage"))


def measure(store, figures, request, folder):
    absent = store.absent()
    if absent:
        answer({"store": store.name, "absent": absent})
        return
    if not store.fits(request):
        return
    for repetition in request["repetitions"]:
        with tempfile.TemporaryDirectory(prefix="modules-", dir=folder) as own:
            try:
                found = figures(store, request, pathlib.Path(own))
            except Exception as error:  # A store that fails doesn't stop the others.
                answer({"note": f"{store.name}: {type(error).__name__}: {' '.join(str(error).split())}"})
                continue
        for measure_name, value in found.items():
            answer({"sample": {"store": store.name, "measure": measure_name, "repetition": repetition, "value": value}})
