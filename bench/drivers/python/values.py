"""Keys, values and the order of operations: the same in every language, as bench/drivers/README.md defines them."""
import hashlib

WORD = 0xFFFF_FFFF
POOL_BYTES = 16_384
DISTINCT = 256
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Streams of random numbers, each with a number of its own.
POOL, VALUES, GETS, MIX = 1, 2, 3, 4


def mixed(x):
    """The finaliser of MurmurHash3: a bijection on 32 bits."""
    x ^= x >> 16
    x = x * 0x85EB_CA6B & WORD
    x ^= x >> 13
    x = x * 0xC2B2_AE35 & WORD
    return x ^ x >> 16


class Stream:
    """Random numbers of 32 bits (xorshift32)."""

    def __init__(self, seed, number):
        self.state = mixed((seed + number) & WORD) or 1

    def next(self):
        x = self.state
        x ^= x << 13 & WORD
        x ^= x >> 17
        x ^= x << 5 & WORD
        self.state = x
        return x

    def below(self, limit):
        return self.next() * limit >> 32


class Values:
    """The part that is the same for every store in a case."""

    def __init__(self, request):
        settings = request["settings"]
        self.seed = request["seed"] & WORD
        self.count, self.operations = settings["keys"], settings["operations"]
        self.stored_percent, self.set_percent = settings["stored_percent"], settings["set_percent"]
        self.binary_bytes, self.structured_fields = settings["binary_bytes"], settings["structured_fields"]
        self.is_structured = request.get("case", {}).get("values") == "structured"
        self.size = request.get("size")

    def keys(self):
        """Twice as many keys as stored objects: those of the second half are never stored."""
        base = mixed(self.seed)
        return [f"key:{mixed(index ^ base):08x}" for index in range(2 * self.count)]

    def pool(self):
        stream = Stream(self.seed, POOL)
        return b"".join(stream.next().to_bytes(4, "little") for _ in range(POOL_BYTES // 4))

    def values(self):
        """The values. Key i has the value i modulo their number."""
        return self.structured(self.size) if self.is_structured else self.binary(self.size)

    def binary(self, mean):
        pool, stream, values = self.pool(), Stream(self.seed, VALUES), []
        for _ in range(DISTINCT // 2):
            distance = stream.below(mean // 2 + 1)
            for length in (mean + distance, mean - distance):
                start = stream.below(POOL_BYTES - length)
                values.append(pool[start:start + length])
        return values

    def structured(self, fields):
        letters = "".join(LETTERS[byte & 63] for byte in self.pool())
        stream = Stream(self.seed, VALUES)
        return [_record(letters, stream, fields) for _ in range(DISTINCT)]

    def gets(self, stored):
        """The key of each get, by index."""
        stream, share, count = Stream(self.seed, GETS), self.stored_percent, self.count
        return [stream.below(stored) if stream.below(100) < share else count + stream.below(count)
                for _ in range(self.operations)]

    def mix(self, stored):
        """The same for gets and sets; a set of key i is -1 - i."""
        stream, share = Stream(self.seed, MIX), self.set_percent
        return [-1 - stream.below(stored) if stream.below(100) < share else stream.below(stored)
                for _ in range(self.operations)]

    def vectors(self):
        """A summary of all this, for the test that compares the languages."""
        keys = self.keys()
        return {
            "keys": {"count": len(keys), "first": keys[:4], "sha256": _digest("\n".join(keys).encode())},
            "gets": _summary(self.gets(self.count)),
            "mix": _summary(self.mix(self.count)),
            "binary": {str(size): _of_values(self.binary(size)) for size in self.binary_bytes.values()},
            "structured": {str(size): _of_values(map(text_of, self.structured(size)))
                           for size in self.structured_fields.values()},
        }


def _record(letters, stream, fields):
    record = {}
    for field in range(fields):
        if field % 4 == 3:
            record[f"field_{field:02d}"] = stream.next() >> 1
            continue
        length = 8 + stream.below(17)
        start = stream.below(POOL_BYTES - length)
        record[f"field_{field:02d}"] = letters[start:start + length]
    return record


def text_of(record):
    """A structured value as text, the same in every language."""
    return "".join(f"{name}={record[name]};" for name in sorted(record)).encode()


def _summary(sequence):
    text = "\n".join(map(str, sequence))
    return {"count": len(sequence), "first": sequence[:8], "sha256": _digest(text.encode())}


def _of_values(values):
    texts = list(values)
    return {"lengths": [len(text) for text in texts[:4]], "bytes": sum(map(len, texts)), "sha256": _digest(b"".join(texts))}


def _digest(data):
    return hashlib.sha256(data).hexdigest()
