"""A visitor of a site: sends requests, keeps cookies, and returns responses."""
import http.client
import urllib.parse

from servers import Failed

# On a busy machine, the slowest page may take long.
PATIENCE_SECONDS = 120


class Reply:
    """A received response."""

    def __init__(self, path, response):
        self.path, self.status, self.body = path, response.status, response.read()
        self.fields = [(name.lower(), value) for name, value in response.getheaders()]

    def field(self, name):
        """The first field of this lower-case name; an empty text if there is none."""
        return next((value for field, value in self.fields if field == name), "")

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def cache(self):
        """Eyewall's member of Cache-Status, which is the last."""
        return next((value for name, value in reversed(self.fields) if name == "cache-status"), "")

    @property
    def is_hit(self):
        return self.cache.startswith("Eyewall; hit")

    def __str__(self):
        return f"{self.path}: {self.status}, {len(self.body)} bytes, Cache-Status: {self.cache or 'none'}"


class Visitor:
    """Sends requests to the server at `url` for `host`, one after the other, on new connections if necessary."""

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
        # A server may close an idle connection, which the next request notices. A body is not sent twice.
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
        # WordPress deletes a cookie by a blank value and an expiry a year ago, PHP by a lifetime of 0.
        if value.strip("+ ") in ("", "%20") or any(text.lower() == "max-age=0" for text in attributes):
            self.cookies.pop(key, None)
        else:
            self.cookies[key] = value

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def log_in(self, user):
        """Logs in by the form of wp-login.php."""
        self.get("/wp-login.php")
        reply = self.post("/wp-login.php", {
            "log": user.login, "pwd": user.password, "wp-submit": "Log In", "testcookie": "1",
            "redirect_to": f"http://{self.host}/wp-admin/",
        })
        if reply.status != 302 or not self.has_cookie("wordpress_logged_in_"):
            raise Failed(f"{user.login} can't log in; {reply}")
        return reply


def expect(is_so, words, reply=None):
    """Fails with this message and what was seen, unless the condition is true."""
    if not is_so:
        raise Failed(words if reply is None else f"{words}; {reply}")
