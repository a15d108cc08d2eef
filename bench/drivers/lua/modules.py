#!/usr/bin/env python3
"""The procedure `modules` on the stores of nginx's Lua module. It runs in nginx (work.lua), since lua_shared_dict exists only there.

Keys, values and the protocol are those of the driver for Python."""
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent / "python"))
import procedure  # noqa: E402
from values import Values  # noqa: E402

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
MODULES = pathlib.Path("/usr/lib/nginx/modules")
CJSON = "/usr/lib/x86_64-linux-gnu/lua/5.1"
PATIENCE_SECONDS = 60

CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
{user}
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    lua_package_path "{root}/bindings/lua/lib/?.lua;{here}/?.lua;;";
    lua_package_cpath "{cjson}/?.so;;";
    lua_shared_dict theirs {bytes};
    init_by_lua_block {{ {init} }}
    server {{
        listen unix:{folder}/socket;
        location / {{ content_by_lua_block {{ ngx.print(require("work").measure("{folder}")) }} }}
    }}
}}
"""
OPEN = 'ngx.shared.ours = assert(require("resty.eyewall.dict").open("{folder}/volume", {{ size = {bytes} }}))'


class Store:
    """A store: ours, nginx's own, or a table as reference."""

    def __init__(self, name, kind="other", is_capped=True, is_ours=False):
        self.name, self.kind, self.is_capped, self.is_ours = name, kind, is_capped, is_ours

    def absent(self):
        """Why the store isn't available here, and what to do; None if it is."""
        if not NGINX or not (MODULES / "ngx_http_lua_module.so").exists():
            return "nginx with its Lua module is missing (apt install libnginx-mod-http-lua)"
        if not pathlib.Path(CJSON, "cjson.so").exists():
            return "the module cjson is missing (apt install lua-cjson)"
        if self.is_ours and subprocess.run(["luajit", "-e", 'require("ffi").load("libeyewall.so.0")'], capture_output=True).returncode:
            return "libeyewall is missing: bindings/lua/README.md; LD_LIBRARY_PATH names the folder that has it"
        return None

    def listed(self):
        absent = self.absent()
        return {"store": self.name, "absent": absent} if absent else {
            "store": self.name, "kind": self.kind, "version": self.version()}

    def version(self):
        said = subprocess.run([NGINX, "-v"], capture_output=True, text=True).stderr
        return "nginx " + re.search(r"[\d.]+", said)[0]

    def fits(self, request):
        return self.is_capped or request["configuration"].get("is_roomy", False)


ALL = [Store("eyewall (Lua)", is_ours=True), Store("lua_shared_dict"), Store("table (Lua)", kind="reference", is_capped=False)]


class Connection(http.client.HTTPConnection):
    """A connection to nginx's socket."""

    def __init__(self, path):
        super().__init__("nginx", timeout=10 * PATIENCE_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def figures(store, request, folder):
    """The figures of one repetition, by measure."""
    data, settings, configuration = Values(request), request["settings"], request["configuration"]
    values = [json.dumps(value).encode() if data.is_structured else value for value in data.values()]
    (folder / "values").write_bytes(b"".join(b"%d\n%b" % (len(value), value) for value in values))
    (folder / "request.json").write_text(json.dumps({
        "store": store.name, "keys": data.keys(), "is_structured": data.is_structured,
        "expiry": configuration.get("expiry_seconds", 0), "settings": {**settings, "seed": data.seed}}))
    named = {"folder": folder, "bytes": configuration["bytes"]}
    (folder / "nginx.conf").write_text(CONFIGURATION.format(
        modules=MODULES, root=ROOT, here=HERE, cjson=CJSON, user="user root;" if os.geteuid() == 0 else "",
        init=OPEN.format(**named) if store.is_ours else "", **named))
    nginx = subprocess.Popen([NGINX, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    try:
        answer = asked(nginx, folder)
    finally:
        nginx.terminate()
        nginx.wait()
    if "failure" in answer:
        raise RuntimeError(answer["failure"])
    return answer["figures"]


def asked(nginx, folder):
    """nginx's answer, once it listens."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        connection = Connection(folder / "socket")
        try:
            connection.request("GET", "/")
            response = connection.getresponse()
            body = response.read()
            break
        except OSError:
            if nginx.poll() is not None or time.monotonic() > end:
                raise RuntimeError((folder / "error.log").read_text().strip().splitlines()[-1]) from None
            time.sleep(0.005)
        finally:
            connection.close()
    if response.status != 200:
        raise RuntimeError((folder / "error.log").read_text().strip().splitlines()[0])
    return json.loads(body)


procedure.run(ALL, figures)
