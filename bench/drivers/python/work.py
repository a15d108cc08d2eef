"""The work on a store, and its time."""
from time import perf_counter

CHECKED = 64


class Wrong(Exception):
    """A store returned a wrong value."""


def figures(store, data, request):
    """The figures of one repetition, by measure."""
    try:
        return _figures(store, data, request["settings"])
    finally:
        store.close()


def _figures(store, data, settings):
    count, rounds, limit = settings["keys"], settings["rounds"], settings["seconds"]
    keys, values, found = data.keys(), data.values(), {}
    set_, get = store.set, store.get
    sequence = list(range(count)) * rounds

    def sets(start, end):
        for index in sequence[start:end]:
            set_(keys[index], values[index & 255])

    done, seconds = timed(len(sequence), limit, sets)
    stored = min(done, count)
    found["set"], found["stored"] = done / seconds, stored

    sequence, hits = data.gets(stored) * rounds, 0

    def gets(start, end):
        nonlocal hits
        for index in sequence[start:end]:
            if get(keys[index]) is not None:
                hits += 1

    done, seconds = timed(len(sequence), limit, gets)
    found["get"], found["get_hits"] = done / seconds, 100 * hits / done
    _check(get, keys, values, sequence, stored)

    sequence, hits, asked = data.mix(stored) * rounds, 0, 0

    def mix(start, end):
        nonlocal hits, asked
        for index in sequence[start:end]:
            if index < 0:
                index = -1 - index
                set_(keys[index], values[index & 255])
                continue
            asked += 1
            if get(keys[index]) is not None:
                hits += 1

    done, seconds = timed(len(sequence), limit, mix)
    found["mix"] = done / seconds
    if asked:
        found["mix_hits"] = 100 * hits / asked
    return found


def timed(count, limit, work):
    """Does `count` operations by `work`, or fewer if the time is up first. Returns their number and their seconds.

    It checks the clock between blocks of operations, and enlarges short blocks.
    """
    done, block = 0, 1
    start = now = perf_counter()
    while done < count and now - start < limit:
        first, before = done, now
        done = min(done + block, count)
        work(first, done)
        now = perf_counter()
        if now - before < limit / 50:
            block *= 2
    return done, now - start


def _check(get, keys, values, sequence, stored):
    for index in sequence[:CHECKED]:
        got = get(keys[index])
        if got is None:
            continue
        if index >= stored:
            raise Wrong("it has a value for a key that was never stored")
        if got != values[index & 255]:
            raise Wrong("it gave another value than the one that was stored")
