"""Concurrent visitors: all request one page; some read, two are logged in, others comment, log in, and edit."""
import itertools
import re
import subprocess
import threading
import time

import pages
from servers import Failed, program
from visitor import expect
from wordpress import HOST

READERS = 4
# The number of actions of each visitor who changes something; the readers continue meanwhile.
ROUNDS = 12
# WordPress loses one of two sessions if one user logs in twice at the same moment: it reads the list of the user's sessions, and
# writes it back. Without a cache, 10 of 60 such pairs lost one. Other requests go on meanwhile.
LOG_INS = threading.Lock()
# The number of visitors on a busy day, and how many come at once.
VISITS = 5000
CONCURRENCY = 200


def stampede(stage):
    """thousands who want a page that isn't stored yet get it, and the site makes it once"""
    # A stale page would be renewed in the background, and still be in flight at the purge. Later requests don't
    # join a flight from before the purge.
    stage.purge_all()
    stage.hit(stage.visitor(), "/")
    stage.purge_all()
    before, start = stage.site.made("/"), time.monotonic()
    command = [program("ab"), "-q", "-l", "-n", VISITS, "-c", CONCURRENCY, "-H", f"Host: {HOST}", f"{stage.server.url}/"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    counts = {name: int(count) for name, count in re.findall(r"^(\w.*?): +(\d+)", done.stdout, re.MULTILINE)}
    expect(done.returncode == 0, f"ab: {done.stderr.strip()}")
    expect(counts.get("Complete requests") == VISITS and counts.get("Failed requests") == 0, f"ab says {done.stdout}")
    expect("Non-2xx responses" not in counts, f"ab says {done.stdout}")
    made = stage.site.made("/") - before
    times = 1 + int((time.monotonic() - start) / pages.PAGE_TTL)
    expect(1 <= made <= times, f"the page was made {made} times for {VISITS} visits")
    print(f"    {VISITS} visits, {counts['Requests per second']} a second; made {made} times", flush=True)


def crowd(stage):
    """all that at once, and still nobody sees a page that is not theirs"""
    doings = [
        lambda: _logged_in(stage, stage.site.users[0]),
        lambda: _logged_in(stage, stage.site.users[1]),
        lambda: _comments(stage, stage.site.posts[8:10]),
        lambda: _edits(stage, stage.site.posts[10:12]),
        lambda: _logs_in_again_and_again(stage, stage.site.users[1]),
    ]
    failures, done, read = [], threading.Event(), itertools.count()

    def guarded(doing):
        try:
            doing()
        except Exception as error:  # Whatever it is, it is told by the one who waits.
            failures.append(error)
            done.set()

    acting = [threading.Thread(target=guarded, args=[doing]) for doing in doings]
    reading = [threading.Thread(target=guarded, args=[lambda: _reads(stage, done, read)]) for _ in range(READERS)]
    for thread in acting + reading:
        thread.start()
    for thread in acting:
        thread.join()
    done.set()
    for thread in reading:
        thread.join()
    if failures:
        raise failures[0] if isinstance(failures[0], Failed) else Failed(f"{type(failures[0]).__name__}: {failures[0]}")
    print(f"    {next(read)} pages were read meanwhile", flush=True)


def _reads(stage, done, read):
    """A visitor of all pages, who must see the requested one."""
    visitor = stage.visitor()
    fixed = [post for post in stage.site.posts[:8] if post.name != pages.SETS_COOKIE]
    for turn in itertools.count():
        for path, mark in [("/", "Behind the eyewall"), *((f"/{post.name}/", post.mark) for post in fixed),
                           *((f"/{post.name}/", post.title) for post in stage.site.posts[8:])]:
            reply = visitor.get(path)
            pages.public_page(stage, reply)
            expect(mark in reply.text, "this is another page", reply)
            next(read)
            # At least one round of all pages, whatever the others do.
            if done.is_set() and turn > 0:
                return


def _logged_in(stage, user):
    visitor = stage.visitor()
    _log_in(visitor, user)
    for turn in range(ROUNDS):
        for path in ("/", f"/{stage.site.posts[turn % 12].name}/", "/wp-admin/profile.php"):
            pages.own_page(stage, visitor.get(path), user)


def _logs_in_again_and_again(stage, user):
    for _ in range(ROUNDS):
        visitor = stage.visitor()
        pages.public_page(stage, visitor.get("/"))
        _log_in(visitor, user)
        pages.own_page(stage, visitor.get("/"), user)


def _log_in(visitor, user):
    with LOG_INS:
        visitor.log_in(user)


def _comments(stage, posts):
    for turn in range(ROUNDS):
        visitor, post = stage.visitor(), posts[turn % len(posts)]
        said, mail = stage.comment(visitor, post)
        own = visitor.get(f"/{post.name}/")
        expect(said in own.text and mail in own.text and not own.is_hit, "who wrote a comment sees it", own)


def _edits(stage, posts):
    for turn in range(ROUNDS):
        post = posts[turn % len(posts)]
        stage.edit(post)
        stage.purge(f"/{post.name}/")
        reply = stage.visitor().get(f"/{post.name}/")
        expect(post.mark in reply.text, "an edit is seen after a purge", reply)
