"""Lines of JSON from and to the suite, and messages for people (bench/drivers/README.md)."""
import json
import os
import pathlib
import signal
import sys


def end_by_signals():
    """A signal ends the driver by an exit: it removes its files and stops its processes. A second signal doesn't interrupt that."""
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def end(got, _):
        for number in signals:
            signal.signal(number, lambda *_: None)
        sys.exit(128 + got)

    for number in signals:
        signal.signal(number, end)


def answer(line):
    print(json.dumps(line), flush=True)


def refuse(words):
    """Ends the driver, since the request is wrong."""
    print(f"{os.path.basename(sys.argv[0])}: {words}", file=sys.stderr)
    sys.exit(2)


def request(*known):
    """The kind of the request on standard input; one of `known`."""
    try:
        asked = json.load(sys.stdin)
    except ValueError as error:
        refuse(f"standard input is no JSON: {error}")
    if not isinstance(asked, dict):
        refuse("standard input is no object of JSON")
    if asked.get("do") not in known:
        refuse(f"\"do\" is {asked.get('do')!r}; it may be {', '.join(known)}")
    return asked


def check_turns(asked, known):
    """Checks the stores and the repetitions of the request."""
    for name in ("stores", "repetitions"):
        if not isinstance(asked.get(name), list) or not asked[name]:
            refuse(f"\"{name}\" has to be a list, and not empty")
    for store in asked["stores"]:
        if store not in known:
            refuse(f"there is no store {store!r} here; {{\"do\":\"list\"}} says which there are")
    if not all(isinstance(number, int) and number > 0 for number in asked["repetitions"]):
        refuse("repetitions count from 1")


def scratch(asked, storage):
    """The directory to work in on a storage."""
    directories = asked.get("scratch")
    path = directories.get(storage) if isinstance(directories, dict) else None
    if not isinstance(path, str) or not os.path.isdir(path):
        refuse(f"\"scratch\" names no directory for the storage {storage!r}")
    return pathlib.Path(path)
