"""MediaWiki behind a fleet: three servers with a volume each, which take pages from each other, and a purge log on a Redis server. The
wiki knows the first one alone.
"""
import concurrent.futures
import secrets

from mediawiki import PAGE, MediaWiki
from servers import Server, free_port, program
from visitor import expect

NODES = 3
READERS_OF_EACH = 20
CONFIGURATION = """
[fleet]
redis = ["redis+unix://{socket}"]
name = "wiki"
max_blind = "2s"
peers = "redis"
peer_listen = "127.0.0.1:{port}"
key_file = "{key}"
"""


class Fleet:
    """The wiki, its servers, and their Redis."""

    def __init__(self, ground):
        self.ground = ground
        self.scratch = ground.scratch / "fleet"
        self.scratch.mkdir()
        self.socket = self.scratch / "redis.sock"
        self.redis = self._start_redis()
        key = self.scratch / "key"
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        self.wiki = MediaWiki(ground, self.scratch, [
            CONFIGURATION.format(socket=self.socket, port=free_port(), key=key) for _ in range(NODES)])

    def _start_redis(self):
        # Debian's package of tools has the server under this name, and starts no service.
        words = f'exec -a redis-server {program("redis-check-rdb")} --port 0 --unixsocket {self.socket} --save ""'
        redis = Server("redis", [program("bash"), "-c", words], self.scratch, port=self.socket)
        self.ground.running.append(redis)
        return redis

    def kill_redis(self):
        self.redis.process.kill()
        self.redis.process.wait()

    def restart_redis(self):
        """Starts it again, without its data."""
        self.socket.unlink(missing_ok=True)
        self.redis = self._start_redis()

    def edit(self):
        """Edits the page through one of the servers. Returns its mark."""
        mark = f"mark{secrets.token_hex(6)}"
        self.wiki.edit(self.wiki.logged_in(), mark)
        return mark

    def seen_everywhere(self, mark):
        for node in range(NODES):
            self.wiki.public_once_purged(mark, node)
            expect(mark in self.wiki.visitor(node).get(PAGE).text, f"server {node} goes back to the page before")


def edited_everywhere(fleet):
    """an edit is seen at each of three servers, although the wiki purges at one"""
    for _ in range(5):
        fleet.seen_everywhere(fleet.edit())


def readers_everywhere(fleet):
    """readers at three servers cost the wiki one page"""
    fleet.seen_everywhere(fleet.edit())
    before = fleet.wiki.made()
    reply = fleet.wiki.visitor().ask("PURGE", PAGE)
    expect(reply.status == 200, "PURGE is done", reply)
    with concurrent.futures.ThreadPoolExecutor(NODES) as crowd:
        pages = crowd.map(lambda reader: fleet.wiki.visitor(reader % NODES).get(PAGE), range(NODES * READERS_OF_EACH))
        statuses = {page.status for page in pages}
    made = fleet.wiki.made() - before
    # A purge of the edit may come late, or a busy home may give no sign of life in time.
    expect(statuses == {200} and made <= 2, f"{statuses}; the wiki made the page {made} times")
    print(f"    {NODES * READERS_OF_EACH} readers; the wiki made the page {made} times", flush=True)


def without_redis(fleet):
    """edits are seen while Redis is dead, and after it has come back empty"""
    fleet.kill_redis()
    for _ in range(2):
        fleet.seen_everywhere(fleet.edit())
    fleet.restart_redis()
    for _ in range(2):
        fleet.seen_everywhere(fleet.edit())


ALL = (edited_everywhere, readers_everywhere, without_redis)
