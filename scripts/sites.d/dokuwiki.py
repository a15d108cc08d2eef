"""DokuWiki behind its preset: Debian's files and PHP's web server, with readers and editors."""
import concurrent.futures
import re
import secrets
import shutil
import string
import subprocess

import unpacked
from servers import Server, free_port, program
from visitor import Visitor, expect

HOST = "notes.test"
WORKERS = 4
READERS = 200
READERS_AT_ONCE = 8
PAGE = "/doku.php?id=storms"
# Absolute paths in Debian's files, which lie in the unpacked folder here.
MOVED = re.compile(rb"/usr/share/(?=(?:php|php-geshi|javascript)/)")
CONFIGURATION = string.Template("""\
[server]
listen = ["127.0.0.1:0"]

[cache]
path = "$volume"
size = "64M"

[[site]]
hosts = ["$host"]
origins = ["$origin"]
preset = "dokuwiki"
""")
SETTINGS = string.Template("""\
<?php
$$conf['title'] = 'Notes';
$$conf['useacl'] = 1;
$$conf['superuser'] = '@admin';
$$conf['disableactions'] = 'register,resendpwd';
$$conf['savedir'] = '$data';
""")


class DokuWiki:
    """A running wiki behind Eyewall."""

    def __init__(self, program_under_test, scratch, kept, running):
        self.scratch, self.folder = scratch, scratch / "dokuwiki"
        # The name is on each page for this user, and nowhere else.
        self.user, self.password, self.name = "ada", secrets.token_hex(12), f"Ada {secrets.token_hex(6)}"
        self._install(kept)
        port = free_port()
        php = Server("dokuwiki-php", [
            program("php"), "-d", "opcache.enable_cli=1", "-d", "display_errors=0", "-S", f"127.0.0.1:{port}", "-t", self.folder,
        ], scratch, port=port, environment={"PHP_CLI_SERVER_WORKERS": str(WORKERS)})
        running.append(php)
        file = scratch / "dokuwiki.toml"
        file.write_text(CONFIGURATION.substitute(volume=scratch / "dokuwiki.eye", host=HOST, origin=php.url))
        self.server = Server("dokuwiki-eyewall", [program_under_test, "serve", "--config", file], scratch)
        running.append(self.server)

    def _install(self, kept):
        tree = unpacked.dokuwiki(kept)
        shutil.copytree(tree / "usr/share/dokuwiki", self.folder, ignore=shutil.ignore_patterns(".htaccess", "plugins", "tpl"))
        for name in ("plugins", "tpl"):
            shutil.copytree(tree / "var/lib/dokuwiki/lib" / name, self.folder / "lib" / name)
        for file in self.folder.rglob("*.php"):
            text = file.read_bytes()
            moved = MOVED.sub(f"{tree}/usr/share/".encode(), text)
            if moved != text:
                file.write_bytes(moved)
        data, settings = self.folder / "data", self.folder / "conf"
        shutil.copytree(tree / "var/lib/dokuwiki/data", data)
        shutil.copytree(tree / "etc/dokuwiki", settings, ignore=shutil.ignore_patterns("*.auth.php"))
        (self.folder / "inc/preload.php").write_text("<?php define('DOKU_CONF', dirname(__DIR__) . '/conf/');\n")
        (settings / "local.php").write_text(SETTINGS.substitute(data=data))
        (settings / "acl.auth.php").write_text("*\t@ALL\t1\n*\t@user\t8\n")
        # The password comes on standard input, so that the list of processes doesn't show it.
        code = "echo password_hash(stream_get_contents(STDIN), PASSWORD_BCRYPT);"
        digest = subprocess.run([program("php"), "-r", code], input=self.password, capture_output=True, text=True, check=True).stdout
        (settings / "users.auth.php").write_text(f"{self.user}:{digest}:{self.name}:ada@notes.test:admin,user\n")
        (data / "pages/storms.txt").write_text("They are to come.")

    def visitor(self):
        """A returning visitor with a session and analytics cookies."""
        visitor = Visitor(self.server.url, HOST)
        visitor.cookies[("_ga", "/")] = f"GA1.1.{secrets.randbelow(10**9)}.1700000000"
        visitor.cookies[("DokuWiki", "/")] = secrets.token_hex(13)
        return visitor

    def logged_in(self):
        visitor = Visitor(self.server.url, HOST)
        form = visitor.get("/doku.php?id=storms&do=login")
        expect('name="sectok"' in form.text and visitor.has_cookie("DokuWiki"), "the form comes with a session", form)
        reply = visitor.post(PAGE, {"sectok": "", "do": "login", "id": "storms", "u": self.user, "p": self.password})
        expect(reply.status == 302 and visitor.has_cookie("DW"), "the user logs in", reply)
        return visitor

    def edit(self, editor, mark):
        """Edits the page by the wiki's form."""
        form = editor.get(f"{PAGE}&do=edit")
        given = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form.text[form.text.index("dw__editform"):]))
        expect(given.get("sectok"), "the form has a token", form)
        reply = editor.post(PAGE, given | {"wikitext": f"They are {mark}.", "summary": "", "do[save]": "Save"})
        expect(reply.status == 302, "the page is saved", reply)

    def made(self):
        """How often the wiki made the page."""
        said = (self.scratch / "dokuwiki-php.out").read_text(errors="replace")
        return len(re.findall(rf"GET {re.escape(PAGE)}$", said, re.MULTILINE))

    def public(self, visitor, mark):
        reply = visitor.get(PAGE)
        expect(reply.status == 200 and mark in reply.text, f"a reader sees {mark}", reply)
        expect(self.name not in reply.text and "set-cookie" not in dict(reply.fields), "a reader gets what is a user's", reply)
        return reply


def readers(wiki):
    """200 readers, each with a session and analytics cookies of their own, cost the wiki one page"""
    mark = f"mark{secrets.token_hex(6)}"
    wiki.edit(wiki.logged_in(), mark)
    before = wiki.made()
    with concurrent.futures.ThreadPoolExecutor(READERS_AT_ONCE) as crowd:
        replies = list(crowd.map(lambda _: wiki.public(wiki.visitor(), mark), range(READERS)))
    hits, made = sum(reply.is_hit for reply in replies), wiki.made() - before
    # Concurrent readers share one request. A reader a minute later causes a renewal in the background.
    expect(hits >= READERS - READERS_AT_ONCE and made <= READERS_AT_ONCE, f"{hits} hits; the wiki made the page {made} times")
    print(f"    {READERS} readers, {hits} hits; the wiki made the page {made} times", flush=True)


def of_their_own(wiki):
    """users who are logged in see pages of their own, and nobody else does, whoever comes first"""
    mark = f"mark{secrets.token_hex(6)}"
    editor = wiki.logged_in()
    wiki.edit(editor, mark)
    for path in (PAGE, "/doku.php?id=storms&do=profile"):
        for _ in range(2):
            reply = editor.get(path)
            expect(wiki.name in reply.text and not reply.is_hit and "stored" not in reply.cache, "a page of their own", reply)
            wiki.public(wiki.visitor(), mark)
    for path in ("/doku.php?id=storms&do=login", "/doku.php?id=storms&do=search&q=they"):
        reader = wiki.visitor()
        for _ in range(2):
            reply = reader.get(path)
            expect(not reply.is_hit and wiki.name not in reply.text, "it is asked for each time", reply)


def edited(wiki):
    """an edit is seen at once: saving the page takes the stored one away"""
    editor = wiki.logged_in()
    for _ in range(3):
        mark = f"mark{secrets.token_hex(6)}"
        wiki.public(wiki.visitor(), "They are")
        wiki.edit(editor, mark)
        wiki.public(wiki.visitor(), mark)


def history(wiki):
    """the list of pages that a reader visited is nobody else's"""
    mark = f"seen{secrets.token_hex(6)}"
    reader = wiki.visitor()
    reader.get(f"/doku.php?id={mark}")
    for visitor in (reader, wiki.visitor()):
        for path in (PAGE, "/doku.php?id=other"):
            reply = visitor.get(path)
            expect(mark not in reply.text, "a page shows what its first reader visited before", reply)


ALL = (readers, of_their_own, edited, history)
