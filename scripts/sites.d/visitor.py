"""A visitor of a site: asks a server, keeps the cookies it is given, and shows what came."""
import http.client
import urllib.parse

from servers import Failed

# A machine that does much else beside lets the slowest page take long.
PATIENCE_SECONDS = 120


class Reply:
    """A response as it came."""

    def __init__(self, path, response):
        self.path, self.status, self.body = path, response.status, response.read()
        self.fields = [(name.lower(), value) for name, value in response.getheaders()]

    def field(self, name):
        """The first field of this name, written small; an empty text if there is none."""
        return next((value for field, value in self.fields if field == name), "")

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def cache(self):
        """What Eyewall says of it in Cache-Status: the last of them is its own."""
        return next((value for name, value in reversed(self.fields) if name == "cache-status"), "")

    @property
    def is_hit(self):
        return self.cache.startswith("Eyewall; hit")

    def __str__(self):
        return f"{self.path}: {self.status}, {len(self.body)} bytes, Cache-Status: {self.cache or 'none'}"


class Visitor:
    """Asks the server at `url` for `host`, one request after the other, each on a connection of its own if it must."""

    def __init__(self, url, host=None):
        self.address = urllib.parse.urlsplit(url).netloc
        self.host = host or self.address
        self.cookies = {}
        self.connection = None

    def get(self, path, **fields):
        return self.ask("GET", path, **fields)

    def post(self, path, form, **fields):
        fields = {"content_type": "application/x-www-form-urlencoded"} | fields
        return self.ask("POST", path, urllib.parse.urlencode(form).encode(), **fields)

    def ask(self, method, path, body=None, **fields):
        """One request. Fields are given by their names, with underscores for hyphens."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()} | {"Host": self.host}
        cookies = [f"{name}={value}" for (name, scope), value in self.cookies.items() if path.startswith(scope)]
        if cookies:
            fields["Cookie"] = "; ".join(cookies)
        reply = self._exchange(method, path, body, fields)
        for name, value in reply.fields:
            if name == "set-cookie":
                self._keep(value)
        return reply

    def has_cookie(self, beginning):
        return any(name.startswith(beginning) for name, _ in self.cookies)

    def _exchange(self, method, path, body, fields):
        # A server may close a connection that lies idle, which is noticed at the next request. A body is not sent twice.
        if body is not None:
            self.close()
        elif self.connection is not None:
            try:
                return self._once(method, path, body, fields)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
        self.connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_SECONDS)
        return self._once(method, path, body, fields)

    def _once(self, method, path, body, fields):
        self.connection.request(method, path, body, fields)
        return Reply(path, self.connection.getresponse())

    def _keep(self, cookie):
        pair, *attributes = [part.strip() for part in cookie.split(";")]
        name, value = pair.split("=", 1)
        scope = next((text[5:] for text in attributes if text.lower().startswith("path=")), "/")
        key = (name, scope)
        # WordPress takes a cookie back by a blank that was good until last year, PHP by one that is good for no time.
        if value.strip("+ ") in ("", "%20") or any(text.lower() == "max-age=0" for text in attributes):
            self.cookies.pop(key, None)
        else:
            self.cookies[key] = value

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def log_in(self, user):
        """As the form of wp-login.php does."""
        self.get("/wp-login.php")
        reply = self.post("/wp-login.php", {
            "log": user.login, "pwd": user.password, "wp-submit": "Log In", "testcookie": "1",
            "redirect_to": f"http://{self.host}/wp-admin/",
        })
        if reply.status != 302 or not self.has_cookie("wordpress_logged_in_"):
            raise Failed(f"{user.login} can't log in; {reply}")
        return reply


def expect(is_so, words, reply=None):
    """Fails with these words, and what was seen, where something is not so."""
    if not is_so:
        raise Failed(words if reply is None else f"{words}; {reply}")
