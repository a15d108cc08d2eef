"""The pages of WordPress through the cache, for one visitor after the other."""
import html
import re
import time

from visitor import expect
from wordpress import HOST, SETS_COOKIE, VISIT_MARK

STYLE = "/wp-includes/css/dist/block-library/style.min.css"
SCRIPT = "/wp-includes/js/wp-emoji-release.min.js"
ADMIN_BAR = 'id="wpadminbar"'
# The preset's times for pages, in seconds: how long they are fresh, and how long they may be sent stale after that.
PAGE_TTL = 60
PAGE_WINDOW = 60
PATIENCE_SECONDS = 240
# Stored pages, and pages that are never stored: because WordPress forbids it, because neither WordPress nor the
# preset gives a lifetime, or because they are for one user.
STORED = ("/", "/post-3/", "/post-3/feed/", "/feed/", "/?s=mark", "/author/editor/", STYLE, SCRIPT)
PASSED = ("/nothing-here/", "/wp-login.php", "/wp-admin/", "/wp-json/wp/v2/posts", "/?p=99999&preview=true")


def right(stage):
    """every page comes as from the site itself, and what may be stored is a hit the second time"""
    anonymous, direct = stage.visitor(), stage.visitor(directly=True)
    for path in STORED + PASSED:
        expected = direct.get(path)
        for is_second in (False, True):
            reply = anonymous.get(path)
            _same(expected, reply)
            expect(path in STORED or not reply.is_hit, "what has to be asked for each time came from the cache", reply)
            expect(path in PASSED or not is_second or reply.is_hit, "the second time is no hit", reply)
    expect(anonymous.get("/nothing-here/").status == 404, "a page that isn't there is 404")
    moved = anonymous.get("/post-3")
    expect(moved.status == 301 and moved.field("location") == f"http://{HOST}/post-3/", "a slash is added", moved)
    for post in stage.site.posts:
        expect(post.mark in anonymous.get(f"/{post.name}/").text, f"{post.name} lacks its text")


def _same(expected, reply):
    expect(reply.status == expected.status, f"the site itself answers {expected.status}", reply)
    for name in ("content-type", "location", "link", "etag", "last-modified", "x-pingback"):
        expect(reply.field(name) == expected.field(name), f"{name} of the site is {expected.field(name)!r}", reply)
    expect(reply.body == expected.body, f"the site itself sends {_difference(expected.text, reply.text)}", reply)


def _difference(expected, found):
    """The first different lines."""
    pairs = zip(expected.splitlines() + [""], found.splitlines() + [""])
    lines = next(((one, other) for one, other in pairs if one != other), ("more", "less"))
    return f"{lines[0][:200]!r} where the cache sends {lines[1][:200]!r}"


def conditional(stage):
    """a stored page answers HEAD, conditions and ranges"""
    anonymous = stage.visitor()
    whole = stage.hit(anonymous, STYLE)
    head = anonymous.ask("HEAD", STYLE)
    expect(head.is_hit and head.body == b"" and head.field("content-length") == str(len(whole.body)), "HEAD", head)
    part = anonymous.get(STYLE, range="bytes=100-199")
    expect(part.status == 206 and part.body == whole.body[100:200], "a range", part)
    feed = stage.hit(anonymous, "/feed/")
    same = anonymous.get("/feed/", if_none_match=feed.field("etag"))
    expect(same.status == 304 and same.is_hit, "a feed that is as it was", same)


def of_their_own(stage):
    """who is logged in sees a page of their own, and nobody else does, whoever comes first"""
    ada, bob = (stage.logged_in(user) for user in stage.site.users)
    for is_ada_first in (True, False):
        stage.purge_all()
        if not is_ada_first:
            stage.hit(stage.visitor(), "/")
        for path in ("/", "/post-3/", "/wp-admin/profile.php"):
            for _ in range(2):
                for visitor, user in zip((ada, bob), stage.site.users):
                    own_page(stage, visitor.get(path), user)
        for path in ("/", "/post-3/"):
            # The visitor who fills the cache, and the one who hits it.
            for _ in range(2):
                public_page(stage, stage.visitor().get(path))
    public_page(stage, stage.visitor().get("/wp-admin/profile.php"), 302)


def log_out(stage):
    """who logs out sees what everybody sees"""
    user = stage.site.users[0]
    visitor = stage.visitor()
    visitor.log_in(user)
    page = visitor.get("/")
    link = re.search(r"/wp-login\.php\?action=logout[^'\"]*", page.text)
    expect(link, "the bar lets them log out", page)
    reply = visitor.get(html.unescape(link[0]))
    expect(reply.status == 302 and not visitor.has_cookie("wordpress_logged_in_"), "logging out", reply)
    public_page(stage, visitor.get("/"))


def own_page(stage, reply, user):
    """A page for this user only."""
    expect(reply.status == 200, f"{user.login} gets a page", reply)
    expect(ADMIN_BAR in reply.text and user.name in reply.text, f"{user.login} gets a page of their own", reply)
    is_past_the_cache = not reply.is_hit and "stored" not in reply.cache
    expect(is_past_the_cache, f"the page of {user.login} has nothing to do with the cache", reply)
    for other in stage.site.users:
        expect(other is user or other.name not in reply.text, f"{user.login} sees a page of {other.login}", reply)
        expect(other is user or other.mail not in reply.text, f"{user.login} sees the address of {other.login}", reply)


def public_page(stage, reply, status=200):
    """A page for everyone."""
    expect(reply.status == status, f"a visitor gets {status}", reply)
    expect(ADMIN_BAR not in reply.text, "a visitor sees the bar of those who are logged in", reply)
    for secret in stage.secrets:
        expect(secret not in reply.text, f"a visitor sees {secret}", reply)


def comment(stage):
    """a comment is seen at once, since its answer names the page that it has changed, and its form keeps nobody's name"""
    post = stage.site.posts[5]
    path = f"/{post.name}/"
    before = stage.hit(stage.visitor(), path)
    writer = stage.visitor()
    said, mail = stage.comment(writer, post)
    own = writer.get(path)
    expect(said in own.text and mail in own.text and not own.is_hit, "who wrote it sees it, and their name in the form", own)
    expect(said not in before.text, "a comment before its time")
    for is_second in (False, True):
        reply = stage.visitor().get(path)
        expect(said in reply.text, "all others see the comment", reply)
        public_page(stage, reply)
        expect(mail not in reply.text, "the address of who wrote a comment is seen by others", reply)
        expect(reply.is_hit or not is_second, "the page with the comment is stored", reply)


def password(stage):
    """a page with a password is shown to who knows it, and to nobody after that"""
    post = stage.site.locked
    path = f"/{post.name}/"
    for is_stored_before in (False, True):
        stage.purge(path)
        if is_stored_before:
            stage.hit(stage.visitor(), path)
        knowing = stage.visitor()
        form = {"post_password": post.password}
        reply = knowing.post("/wp-login.php?action=postpass", form, referer=f"http://{HOST}{path}")
        expect(reply.status == 302, "the password is taken", reply)
        for _ in range(2):
            reply = knowing.get(path)
            expect(post.mark in reply.text and not reply.is_hit, "who knows the password sees the page", reply)
            reply = stage.visitor().get(path)
            expect(post.mark not in reply.text and "post_password" in reply.text, "the others are asked for it", reply)


def preview(stage):
    """a draft is seen by who may edit it, and by nobody else"""
    draft = stage.site.draft
    path = f"/?p={draft.number}&preview=true"
    editor = stage.logged_in(stage.site.editor)
    for _ in range(2):
        reply = editor.get(path)
        expect(reply.status == 200 and draft.mark in reply.text and not reply.is_hit, "the editor sees the draft", reply)
        for other in (path, f"/?p={draft.number}"):
            reply = stage.visitor().get(other)
            expect(reply.status == 404 and draft.mark not in reply.text, "a visitor sees no draft", reply)
            expect("preview" not in other or not reply.is_hit, "a preview is not answered from the cache", reply)


def edit_and_purge(stage):
    """an edit is seen after a purge of its page, of the front page and of the feed, by the first who asks"""
    post = stage.site.posts[-1]
    paths = (f"/{post.name}/", "/", "/feed/")
    for path in paths:
        expect(post.mark in stage.hit(stage.visitor(), path).text, f"{path} shows the post before it is edited")
    old = post.mark
    stage.edit(post)
    for path in paths:
        stage.purge(path)
        for _ in range(2):
            reply = stage.visitor().get(path)
            expect(post.mark in reply.text and old not in reply.text, "the edit is seen after the purge", reply)
        expect(reply.is_hit, "what was purged is stored again", reply)


def edit_and_wait(stage):
    """an edit is seen without a purge when the page's time is over"""
    post = stage.site.posts[2]
    path = f"/{post.name}/"
    stage.purge(path)
    stage.hit(stage.visitor(), path)
    stage.edit(post)
    start = time.monotonic()
    while True:
        reply = stage.visitor().get(path)
        age = int(reply.field("age") or 0)
        expect(age <= PAGE_TTL + PAGE_WINDOW, "a page is older than its time and its window", reply)
        if post.mark in reply.text:
            return
        expect(reply.is_hit, "an old page comes from where, if not from the cache?", reply)
        expect(time.monotonic() - start < PATIENCE_SECONDS, "the edit isn't seen", reply)
        time.sleep(1)


def cookies(stage):
    """a page that sets a cookie is made for each visitor; a page is stored for those who have cookies of no account"""
    path = f"/{SETS_COOKIE}/"
    given = set()
    for _ in range(3):
        visitor = stage.visitor()
        reply = visitor.get(path)
        expect(reply.status == 200 and not reply.is_hit, "a page that sets a cookie is asked for each time", reply)
        given.add(visitor.cookies.get(("visit", "/")))
    expect(len(given) == 3 and None not in given, f"each visitor gets a cookie of their own, not {given}")
    counted = stage.visitor()
    counted.cookies[("_ga", "/")] = "GA1.1.1234567890.1234567890"
    public_page(stage, stage.hit(counted, "/"))


def nothing_private_stored(stage):
    """no cookie, and nothing that is somebody's own, lies in the volume"""
    post = stage.site.posts[4]
    stage.hit(stage.visitor(), f"/{post.name}/")
    volume = stage.volume.read_bytes()
    expect(post.mark.encode() in volume, "a page that is stored is not found in the volume: this can't be looked for so")
    cookies_of_wordpress = ("wordpress_test_cookie", "wordpress_logged_in_", "comment_author_", "wp-postpass_")
    for text in (*stage.secrets, *cookies_of_wordpress, VISIT_MARK):
        expect(text.encode() not in volume, f"{text} is in the volume")


ALL = (
    right, conditional, of_their_own, log_out, cookies, comment, password, preview, edit_and_purge, edit_and_wait,
)
