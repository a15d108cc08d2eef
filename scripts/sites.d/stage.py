"""The site behind Eyewall, and actions of its visitors."""
import json
import secrets
import string
import subprocess

from servers import Failed, Server
from visitor import Visitor, expect
from wordpress import HOST, a_post

VOLUME_SIZE = "64M"
CONFIGURATION = string.Template("""\
[server]
listen = ["127.0.0.1:0"]
purge_token_file = "$token_file"

[server.admin]
socket = "$admin"

[cache]
path = "$volume"
size = "$size"

[[site]]
hosts = ["$host"]
origins = ["$origin"]
preset = "wordpress"
""")


class Stage:
    def __init__(self, site, program, scratch, running):
        self.site, self.program = site, program
        self.volume = scratch / "site.eye"
        # Texts that no public page may show.
        self.secrets = site.secrets_of_users()
        self.token = secrets.token_hex(16)
        token_file = scratch / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(self.token)
        file = scratch / "eyewall.toml"
        file.write_text(CONFIGURATION.substitute(
            token_file=token_file, admin=site.admin, volume=self.volume, size=VOLUME_SIZE, host=HOST, origin=site.url))
        self.server = Server("eyewall", [program, "serve", "--config", file], scratch)
        running.append(self.server)

    def visitor(self, directly=False):
        """A new visitor, with or without the cache."""
        return Visitor(self.site.url if directly else self.server.url, HOST)

    def logged_in(self, user):
        visitor = self.visitor()
        visitor.log_in(user)
        return visitor

    def hit(self, visitor, path):
        """Repeats the request until the page comes from the cache: the second one does if nobody else requests
        it.
        """
        for _ in range(10):
            reply = visitor.get(path)
            if reply.is_hit:
                return reply
        raise Failed(f"asked again and again, it is no hit; {reply}")

    def purge(self, path):
        """Purges the page of this path, with all its variants."""
        reply = self.visitor().ask("PURGE", path, authorization=f"Bearer {self.token}")
        expect(reply.status == 200, "PURGE is done", reply)

    def purge_all(self):
        # By the command, which changes the volume while the server uses it.
        command = [self.program, "purge", "--cache", self.volume, "--all"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"eyewall purge: {done.stderr.strip()}")

    def edit(self, post):
        """Edits a post like WordPress's editor, and gives it another mark."""
        editor = self.logged_in(self.site.editor)
        nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
        after = a_post(post.name)
        change = json.dumps({"content": after.content()})  # tidy: word, the library's
        reply = editor.ask("POST", f"/wp-json/wp/v2/posts/{post.number}", change.encode(),
                           content_type="application/json", x_wp_nonce=nonce)
        expect(reply.status == 200 and after.mark in reply.text, f"{post.name} is edited", reply)
        post.mark = after.mark

    def comment(self, visitor, post):
        """Posts a comment as a visitor whose name is kept in a cookie. Returns the comment and the address."""
        said, mail = f"said{secrets.token_hex(6)}", f"visitor.{secrets.token_hex(6)}@site.test"
        self.secrets.append(mail)
        reply = visitor.post("/wp-comments-post.php", {
            "comment": said, "author": "Somebody", "email": mail, "url": "", "submit": "Post Comment",
            "comment_post_ID": post.number, "comment_parent": 0, "wp-comment-cookies-consent": "yes",
        })
        expect(reply.status == 302 and f"/{post.name}/" in reply.field("location"), "a comment is taken", reply)
        expect(visitor.has_cookie("comment_author_email_"), "its cookie is set", reply)
        return said, mail
