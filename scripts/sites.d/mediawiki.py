"""MediaWiki behind its preset: Debian's files, SQLite and PHP's web server, with readers and editors. One server is in front of it, or a
fleet of servers.
"""
import concurrent.futures
import json
import os
import re
import secrets
import shutil
import string
import subprocess
import time

import unpacked
from servers import Failed, Server, free_port, program
from visitor import Visitor, expect

HOST = "wiki.test"
WORKERS = 4
READERS = 200
READERS_AT_ONCE = 8
PATIENCE_SECONDS = 60
PAGE = "/index.php/Storms"
CONFIGURATION = string.Template("""\
[server]
listen = ["127.0.0.1:0"]
purge_from = ["127.0.0.1"]

[cache]
path = "$volume"
size = "64M"

[[site]]
hosts = ["$host"]
origins = ["$origin"]
preset = "mediawiki"
$more
""")


class MediaWiki:
    """A running wiki behind one or more servers; it sends PURGE requests to the first one. `more` has configuration for each server."""

    def __init__(self, ground, scratch, more=("",)):
        self.scratch, self.folder = scratch, scratch / "mediawiki"
        # The user's name is on each page for them, and nowhere else: pages don't name editors.
        self.user, self.password = f"Ada{secrets.token_hex(6)}", secrets.token_hex(12)
        self._install(ground.kept)
        port = free_port()
        php = Server("mediawiki-php", [
            program("php"), "-d", "opcache.enable_cli=1", "-d", "display_errors=0", "-S", f"127.0.0.1:{port}", "-t", self.folder,
        ], scratch, port=port, environment={"PHP_CLI_SERVER_WORKERS": str(WORKERS)})
        ground.running.append(php)
        self.servers = []
        for number, more_of_this in enumerate(more):
            file = scratch / f"mediawiki-{number}.toml"
            file.write_text(CONFIGURATION.substitute(
                volume=scratch / f"mediawiki-{number}.eye", host=HOST, origin=php.url, more=more_of_this))
            self.servers.append(Server(f"mediawiki-eyewall-{number}", [ground.program, "serve", "--config", file], scratch))
            ground.running.append(self.servers[-1])
        with open(self.folder / "LocalSettings.php", "a") as settings:
            settings.write(f"\n$wgUseCdn = true;\n$wgCdnServers = [ '127.0.0.1:{self.servers[0].port}' ];\n")

    def _install(self, kept):
        tree = unpacked.mediawiki(kept)
        shutil.copytree(tree, self.folder, ignore=lambda folder, names: [
            name for name in names if os.path.islink(os.path.join(folder, name)) and not os.path.exists(os.path.join(folder, name))])
        for name in ("extensions", "images", "cache"):
            (self.folder / name).mkdir(exist_ok=True)
        data = self.scratch / "mediawiki-data"
        data.mkdir(mode=0o700)
        done = subprocess.run([
            program("php"), "maintenance/install.php", "--dbtype", "sqlite", "--dbpath", data, "--dbname", "wiki",
            "--server", f"http://{HOST}", "--scriptpath", "", "--lang", "en", "--pass", self.password, "Wiki", self.user,
        ], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"MediaWiki could not be installed: {(done.stdout + done.stderr).strip()[-2000:]}")

    def visitor(self, server=0):
        """A new visitor of a server, with analytics cookies."""
        visitor = Visitor(self.servers[server].url, HOST)
        visitor.cookies[("_ga", "/")] = f"GA1.1.{secrets.randbelow(10**9)}.1700000000"
        visitor.cookies[("_pk_id.1.1fff", "/")] = secrets.token_hex(8)
        return visitor

    def logged_in(self):
        visitor = self.visitor()
        form = visitor.get("/index.php?title=Special:UserLogin")
        token = re.search(r'name="wpLoginToken"[^>]*value="([^"]+)"|value="([^"]+)"[^>]*name="wpLoginToken"', form.text)
        expect(token, "the form has a token", form)
        reply = visitor.post("/index.php?title=Special:UserLogin&returnto=Main+Page", {
            "wpName": self.user, "wpPassword": self.password, "wpLoginToken": token[1] or token[2],
            "wploginattempt": "Log in", "authAction": "login", "title": "Special:UserLogin",
        })
        expect(reply.status in (302, 303) and visitor.has_cookie("wikiUserID"), "the user logs in", reply)
        return visitor

    def edit(self, editor, mark):
        """Edits the page."""
        asked = editor.get("/api.php?action=query&meta=tokens&format=json")
        token = json.loads(asked.text)["query"]["tokens"]["csrftoken"]  # tidy: word, the library's
        reply = editor.post("/api.php", {
            "action": "edit", "title": "Storms", "text": f"They are {mark}.", "token": token, "format": "json"})
        expect('"result":"Success"' in reply.text, "the page is edited", reply)

    def made(self):
        """How often the wiki made the page."""
        said = (self.scratch / "mediawiki-php.out").read_text(errors="replace")
        return len(re.findall(rf"GET {re.escape(PAGE)}$", said, re.MULTILINE))

    def public(self, visitor, mark):
        reply = visitor.get(PAGE)
        expect(reply.status == 200 and mark in reply.text, f"a reader sees {mark}", reply)
        expect(self.user not in reply.text and self.user.lower() not in reply.text, "a reader sees the user's name", reply)
        return reply

    def public_once_purged(self, mark, server=0):
        """Waits, since MediaWiki sends its PURGE after it has answered the editor."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            reply = self.visitor(server).get(PAGE)
            if mark in reply.text:
                return
            expect(time.monotonic() < deadline, "the wiki purges what was edited", reply)
            time.sleep(0.1)


def readers(wiki):
    """200 readers, each with analytics cookies of their own, cost the wiki one page"""
    mark = f"mark{secrets.token_hex(6)}"
    wiki.edit(wiki.logged_in(), mark)
    wiki.public_once_purged(mark)
    before = wiki.made()
    with concurrent.futures.ThreadPoolExecutor(READERS_AT_ONCE) as crowd:
        replies = list(crowd.map(lambda _: wiki.public(wiki.visitor(), mark), range(READERS)))
    hits, made = sum(reply.is_hit for reply in replies), wiki.made() - before
    # The first request may come before the last purge of the edit.
    expect(hits >= READERS - READERS_AT_ONCE and made <= READERS_AT_ONCE, f"{hits} hits; the wiki made the page {made} times")
    print(f"    {READERS} readers, {hits} hits; the wiki made the page {made} times", flush=True)


def of_their_own(wiki):
    """users who are logged in see pages of their own, and nobody else does, whoever comes first"""
    mark = f"mark{secrets.token_hex(6)}"
    editor = wiki.logged_in()
    wiki.edit(editor, mark)
    wiki.public_once_purged(mark)
    for path in (PAGE, "/index.php?title=Special:Preferences"):
        for _ in range(2):
            reply = editor.get(path)
            expect(wiki.user in reply.text and not reply.is_hit and "stored" not in reply.cache, "a page of their own", reply)
            wiki.public(wiki.visitor(), mark)
    for path in ("/index.php?title=Special:UserLogin", "/index.php?title=Storms&action=edit"):
        reader = wiki.visitor()
        for _ in range(2):
            reply = reader.get(path)
            expect(not reply.is_hit and wiki.user not in reply.text, "it is asked for each time", reply)


def edited(wiki):
    """an edit is seen as soon as the wiki has purged its page"""
    editor = wiki.logged_in()
    for _ in range(3):
        mark = f"mark{secrets.token_hex(6)}"
        wiki.edit(editor, mark)
        wiki.public_once_purged(mark)
        wiki.public(wiki.visitor(), mark)


ALL = (readers, of_their_own, edited)
