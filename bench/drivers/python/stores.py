"""The stores of Python: the name of each, its source, its configurations, and how to open it."""
import importlib
import importlib.metadata
import importlib.util
import pickle
import sys


class Opened:
    """An open store: `set(key, value)`, `get(key)`, which is None for a miss, and `close()`."""

    def __init__(self, set_, get, close=lambda: None):
        self.set, self.get, self.close = set_, get, close


class Store:
    """A kind of store. A capped one has every configuration, any other only the one in which all objects fit."""

    def __init__(self, name, open_, module=None, package=None, kind="other", is_capped=False, is_for_structured_only=False):
        self.name, self.open, self.module, self.package, self.kind = name, open_, module, package, kind
        self.is_capped, self.is_for_structured_only = is_capped, is_for_structured_only

    def absent(self):
        """Why the store isn't available here, and what to do; None if it is."""
        if self.module is None or importlib.util.find_spec(self.module):
            return None
        how = f"apt install {self.package}" if self.package else "bindings/python/README.md; PYTHONPATH=FOLDER adds a folder with it"
        return f"the module {self.module} is missing for {sys.executable} ({how})"

    def listed(self):
        absent = self.absent()
        return {"store": self.name, "absent": absent} if absent else {
            "store": self.name, "kind": self.kind, "version": self.version()}

    def version(self):
        if self.module is None:
            return f"Python {sys.version.split()[0]}"
        module = importlib.import_module(self.module)
        version = getattr(module, "__version__", None) or importlib.metadata.version(self.module)
        return f"{version}, LMDB {'.'.join(map(str, module.version()))}" if self.module == "lmdb" else version

    def fits(self, request):
        if self.is_for_structured_only and request["case"]["values"] != "structured":
            return False
        return self.is_capped or request["configuration"].get("is_roomy", False)


def _open_eyewall(request, folder):
    import eyewall
    configuration = request["configuration"]
    serializer = None if request["case"]["values"] == "binary" else "pickle"
    cache = eyewall.Cache(folder / "volume", size=configuration["bytes"], serializer=serializer)
    expiry = configuration.get("expiry_seconds")
    put = cache.put if expiry is None else lambda key, value: cache.put(key, value, ttl=expiry)
    return Opened(put, cache.get, cache.close)


def _open_lmdb(request, folder):
    """A transaction for each operation, without syncs: a cache may be lost with the power."""
    import lmdb
    environment = lmdb.open(str(folder), map_size=2 * request["configuration"]["bytes"], sync=False, metasync=False)

    def put(key, value):
        with environment.begin(write=True) as transaction:
            transaction.put(key.encode(), value)

    def get(key):
        with environment.begin() as transaction:
            return transaction.get(key.encode())

    if request["case"]["values"] == "binary":
        return Opened(put, get, environment.close)

    def thawed(key):
        pickled = get(key)
        return None if pickled is None else pickle.loads(pickled)

    return Opened(lambda key, value: put(key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)), thawed, environment.close)


def _open_diskcache(request, folder):
    import diskcache
    cache = diskcache.Cache(str(folder), size_limit=request["configuration"]["bytes"])
    expiry = request["configuration"].get("expiry_seconds")
    return Opened(lambda key, value: cache.set(key, value, expire=expiry), cache.get, cache.close)


def _django(backend):
    """One of Django's caches. Their cap is a number of entries: the bytes of the configuration, divided by the mean value."""

    def opened(request, folder):
        from django.conf import settings
        if not settings.configured:
            settings.configure()
        configuration = request["configuration"]
        mean = request["settings"]["binary_bytes"][request["case"]["size"]]
        options = {"MAX_ENTRIES": configuration["bytes"] // mean}
        name, path = backend.rsplit(".", 1)
        cache = getattr(importlib.import_module(f"django.core.cache.backends.{name}"), path)(
            str(folder), {"TIMEOUT": configuration.get("expiry_seconds"), "OPTIONS": options})
        return Opened(cache.set, cache.get)

    return opened


def _open_dict(_request, _folder):
    entries = {}
    return Opened(entries.__setitem__, entries.get)


def _open_pickle(_request, _folder):
    """The cost of serialising alone; bytes need none."""
    entries = {}

    def put(key, value):
        entries[key] = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def get(key):
        pickled = entries.get(key)
        return None if pickled is None else pickle.loads(pickled)

    return Opened(put, get)


ALL = (
    Store("eyewall (Python)", _open_eyewall, "eyewall", is_capped=True),
    Store("lmdb (Python)", _open_lmdb, "lmdb", "python3-lmdb"),
    Store("diskcache", _open_diskcache, "diskcache", "python3-diskcache", is_capped=True),
    Store("Django files", _django("filebased.FileBasedCache"), "django", "python3-django", is_capped=True),
    Store("Django locmem", _django("locmem.LocMemCache"), "django", "python3-django", is_capped=True),
    Store("dict (Python)", _open_dict, kind="reference"),
    Store("pickle (Python)", _open_pickle, kind="reference", is_for_structured_only=True),
)
