"""A WordPress with a database in its own folder: Debian's files, a MariaDB without a port, and PHP's web server."""
import dataclasses
import json
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess

import unpacked
from servers import Failed, Server, free_port, program

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE.parents[1] / "bindings/php/wordpress/eyewall"
HOST = "site.test"
WORKERS = 6
POSTS = 12
# The post whose page sets a cookie, and the beginning of the cookie's value; see plugin.php.
SETS_COOKIE = "post-7"
VISIT_MARK = "visit-of-"


@dataclasses.dataclass
class User:
    """A user who can log in. Only pages for a user who writes nothing show that user's name, so it reveals a
    misdirected page.
    """

    login: str
    name: str
    password: str
    mail: str


@dataclasses.dataclass
class Post:
    """A post; only its own text contains its mark."""

    name: str
    title: str
    mark: str
    status: str = "publish"
    password: str = ""
    number: int = 0

    def content(self):
        return f"<!-- wp:paragraph -->\n<p>{self.mark}</p>\n<!-- /wp:paragraph -->"


def a_user(login):
    token = secrets.token_hex(6)
    return User(login, f"{login.capitalize()} {token}", secrets.token_hex(12), f"{login}.{token}@site.test")


def a_post(name, **more):
    return Post(name, name.replace("-", " ").capitalize(), f"mark{secrets.token_hex(6)}", **more)


class WordPress:
    """The running site. `url` is the address of its server, which needs the header HOST."""

    def __init__(self, scratch, kept, running, extension=None):
        self.scratch, self.folder = scratch, scratch / "wordpress"
        # PHP's extension for the plugin; None: the site has no plugin.
        self.extension = extension
        # The administration's socket of the server in front.
        self.admin = scratch / "admin.sock"
        self.editor, self.users = a_user("editor"), [a_user("ada"), a_user("bob")]
        self.posts = [a_post(f"post-{number}") for number in range(POSTS)]
        self.locked = a_post("locked-post", password=secrets.token_hex(6))
        self.draft = a_post("draft-post", status="draft")
        self.environment = {
            "SITES_HOST": HOST, "SITES_SETS_COOKIE": SETS_COOKIE, "SITES_VISIT_MARK": VISIT_MARK,
            "SITES_SECRET": secrets.token_hex(16), "SITES_DATABASE": str(scratch / "db.sock"),
            "SITES_MADE": str(scratch / "made.txt"), "PHP_CLI_SERVER_WORKERS": str(WORKERS),
        }
        if extension:
            self.environment |= {"SITES_OBJECTS": str(scratch / "objects.eye"), "SITES_ADMIN": str(self.admin)}
        self._lay_out(kept)
        running.append(self._database())
        self._install()
        php = self._php()
        running.append(php)
        self.url = php.url

    def secrets_of_users(self):
        """Texts that only pages for one user may show."""
        # Posts show the name of their editor.
        return [self.editor.mail, *(text for user in self.users for text in (user.name, user.mail))]

    def made(self, path):
        """How often the page of this path was made."""
        return (self.scratch / "made.txt").read_text().splitlines().count(path)

    def script(self, text):
        """Runs a script in a PHP of its own, in which WordPress is loaded, and returns what it prints."""
        return _run([program("php"), *self._loads(), "-r", f"require './wp-load.php'; {text}"], folder=self.folder, environment=self.environment)

    def _loads(self):
        return ["-d", f"extension={self.extension}"] if self.extension else []

    def _lay_out(self, kept):
        # Link to packaged libraries only. WordPress's own configuration would look for its database in
        # /etc.
        shutil.copytree(unpacked.wordpress(kept), self.folder, ignore=_dangling)
        shutil.copyfile(HERE / "wp-config.php", self.folder / "wp-config.php")
        plugins = self.folder / "wp-content/mu-plugins"
        plugins.mkdir()
        shutil.copyfile(HERE / "plugin.php", plugins / "plugin.php")
        if self.extension:
            shutil.copytree(PLUGIN, self.folder / "wp-content/plugins/eyewall")

    def _database(self):
        data, user = self.scratch / "db", pwd.getpwuid(os.geteuid()).pw_name
        _run([program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", f"--user={user}",
              "--auth-root-authentication-method=normal", "--skip-test-db"])
        socket = self.scratch / "db.sock"
        return Server("mariadbd", [
            program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--user={user}",
            f"--pid-file={self.scratch / 'db.pid'}", "--skip-networking", "--innodb-buffer-pool-size=64M",
            # Durability doesn't matter here.
            "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
        ], self.scratch, port=socket)

    def _install(self):
        posts = [*self.posts, self.locked, self.draft]
        wanted = {
            "title": "Behind the eyewall",
            "editor": dataclasses.asdict(self.editor),
            "users": [dataclasses.asdict(user) for user in self.users],
            "posts": [dataclasses.asdict(post) | {"content": post.content()} for post in posts],
        }
        as_json = json.dumps(wanted)  # tidy: word, the library's
        said = _run([program("php"), HERE / "set_up.php"], as_json, self.folder, self.environment)
        try:
            numbers = json.loads(said.splitlines()[-1])
        except (ValueError, IndexError):
            raise Failed(f"WordPress could not be installed: {said.strip()[-2000:]}") from None
        for post in posts:
            post.number = numbers[post.name]

    def _php(self):
        port = free_port()
        return Server("php", [
            program("php"), *self._loads(), "-d", "opcache.enable_cli=1", "-d", "display_errors=0", "-d", "log_errors=1",
            "-S", f"127.0.0.1:{port}", "-t", self.folder, HERE / "router.php",
        ], self.scratch, port=port, environment=self.environment)


def _dangling(folder, names):
    return [name for name in names if not (pathlib.Path(folder) / name).exists()]


def _run(command, given="", folder=None, environment=None):
    done = subprocess.run(list(map(str, command)), input=given, cwd=folder, capture_output=True, text=True, check=False,
                          env=os.environ | (environment or {}))
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise Failed(f"{pathlib.Path(command[0]).name} failed: {said}")
    return done.stdout
