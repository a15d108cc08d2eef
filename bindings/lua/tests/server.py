"""nginx with its Lua module on a Unix socket, for one test class; and an origin for it."""
import ctypes
import http.client
import http.server
import os
import pathlib
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest

LUA = pathlib.Path(__file__).resolve().parent.parent
MODULES = pathlib.Path(os.environ.get("NGINX_MODULES", "/usr/lib/nginx/modules"))
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
# A condition that hasn't come true after this time never does.
PATIENCE_SECONDS = 60

CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
{user}
worker_processes {workers};
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    lua_package_path "{lua}/lib/?.lua;;";
    {http}
    server {{
        listen unix:{folder}/socket;
        server_name example.org;
        {server}
    }}
}}
"""


def missing() -> str | None:
    """Why nginx can't be tested; None if it can."""
    if not NGINX:
        return "nginx is missing"
    if not (MODULES / "ngx_http_lua_module.so").exists():
        return "nginx's Lua module is missing"
    return None


def wait_for(condition, what: str):
    """Waits for a result that isn't false, and returns it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE_SECONDS} s: not yet: {what}")
        time.sleep(0.005)
    return result


def end_with_parent():
    """The kernel ends the calling process, and the program that it becomes, when the thread that forked it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Connection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: pathlib.Path, receive_bytes: int = 0):
        super().__init__("example.org", timeout=PATIENCE_SECONDS)
        self.path, self.receive_bytes = path, receive_bytes

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if self.receive_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def is_listening(folder: pathlib.Path) -> bool:
    """Whether the nginx in this folder takes connections."""
    connection = Connection(folder / "socket")
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


class Response:
    """A whole response."""

    def __init__(self, response: http.client.HTTPResponse):
        self.status, self.fields, self.body = response.status, response.headers, response.read()


class Server(unittest.TestCase):
    """Tests with an nginx of `http`, `server` and `workers`; in them, @folder@ is its folder."""

    http, server, workers = "", "", 2
    # Of the workers, if root runs the tests.
    user = "root"

    @classmethod
    def setUpClass(cls):
        if reason := missing():
            if os.environ.get("CI"):
                raise AssertionError(reason)
            raise unittest.SkipTest(reason)
        scratch = tempfile.TemporaryDirectory(prefix="eyewall-lua-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        configuration = CONFIGURATION.format(
            modules=MODULES, user=f"user {cls.user};" if os.geteuid() == 0 else "", workers=cls.workers, folder=cls.folder, lua=LUA,
            http=cls.http.replace("@folder@", str(cls.folder)), server=cls.server.replace("@folder@", str(cls.folder)))
        (cls.folder / "nginx.conf").write_text(configuration)
        cls.nginx = subprocess.Popen(
            [NGINX, "-p", cls.folder, "-e", cls.folder / "error.log", "-c", cls.folder / "nginx.conf", "-g", "daemon off;"],
            preexec_fn=end_with_parent)
        cls.addClassCleanup(cls.end)
        wait_for(cls.is_ready, "nginx listens")

    @classmethod
    def is_ready(cls) -> bool:
        if cls.nginx.poll() is not None:
            raise AssertionError(f"nginx has ended: {cls.log()}")
        return is_listening(cls.folder)

    @classmethod
    def end(cls):
        cls.nginx.send_signal(signal.SIGTERM)
        try:
            cls.nginx.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            cls.nginx.kill()
            cls.nginx.wait()

    @classmethod
    def log(cls) -> str:
        return (cls.folder / "error.log").read_text(errors="replace")

    def ask(self, path: str, method: str = "GET", body: str | None = None, **fields: str) -> Response:
        """A request on a connection of its own. `Cache_Control` is the field Cache-Control."""
        connection = Connection(self.folder / "socket")
        try:
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            connection.request(method, path, body, headers)
            return Response(connection.getresponse())
        finally:
            connection.close()

    def text(self, path: str, body: str | None = None) -> str:
        """The body of a response that has to be 200."""
        response = self.ask(path, "POST" if body else "GET", body)
        self.assertEqual(200, response.status, response.body.decode(errors="replace") + self.log())
        return response.body.decode()

    def at_once(self, count: int, work) -> list:
        """Calls `work` on so many threads; returns the results."""
        results = [None] * count

        def run(number):
            results[number] = work()

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE_SECONDS)
        return results

    def children(self) -> set[int]:
        """The present workers."""
        listed = pathlib.Path(f"/proc/{self.nginx.pid}/task/{self.nginx.pid}/children").read_text()
        return {int(child) for child in listed.split()}


class Origin(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """An origin on a Unix socket: `answer(path, fields)` returns status, fields and body. It counts the requests."""

    daemon_threads = True

    def __init__(self, path: pathlib.Path, answer):
        super().__init__(str(path), Handler)
        self.answer, self.counts, self.lock = answer, {}, threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    def count(self, path: str) -> int:
        with self.lock:
            return self.counts.get(path, 0)

    def handle_error(self, request, client_address):
        pass  # nginx has closed the connection, since its client went away

    def end(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    """A request to the origin."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.counts[self.path] = self.server.counts.get(self.path, 0) + 1
        status, fields, body = self.server.answer(self.path, self.headers)
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if "Content-Length" not in dict(fields):
            self.send_header("Content-Length", str(len(body)))
        else:
            self.close_connection = True  # the body may be shorter than that
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def address_string(self):
        return "nginx"

    def log_message(self, *_):
        pass
