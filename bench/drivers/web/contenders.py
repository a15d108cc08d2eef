"""The servers to compare: how to start each, and its version."""
import os
import pathlib
import shutil
import string
import subprocess
import tomllib
from typing import Callable, NamedTuple

from servers import Failed, Server, free_port, program

HERE = pathlib.Path(__file__).resolve().parent
LOCK_FILE = HERE.parent.parent.parent / "Cargo.lock"
VOLUME_SIZE = "256M"
# One request fills an entry; the others wait for it.
NGINX_CACHE = "proxy_cache pages; proxy_cache_lock on;"
# Programs that aren't ours, and their Debian packages.
PACKAGES = {"nginx": "nginx", "varnishd": "varnish", "apache2": "apache2", "traffic_server": "trafficserver"}


class Ground:
    """The arguments to start a server, in a directory of its own."""

    def __init__(self, scratch, core, origin, programs, descriptors, files=None, certificates=None):
        self.scratch, self.core, self.origin = scratch, core, origin
        self.programs, self.descriptors, self.files, self.certificates = programs, descriptors, files, certificates

    def template(self, file, port, **more):
        """Fills in a template of this folder. Returns the path of the result."""
        is_root = os.geteuid() == 0
        values = {
            "scratch": self.scratch, "port": port, "descriptors": self.descriptors,
            # If root starts a server, it has to name another user for the workers. For all other users the servers
            # ignore this.
            "user": "www-data" if is_root else "nobody", "group": "www-data" if is_root else "nogroup",
            "apache_modules": "/usr/lib/apache2/modules", **more,
        }
        if self.origin:
            host, origin_port = self.origin.split("//", 1)[1].split(":")
            values |= {"origin": f"{host}:{origin_port}", "origin_host": host, "origin_port": origin_port}
        text = (HERE / file).read_text()
        # The variables of nginx have no braces, and those of Apache have other names.
        target = self.scratch / pathlib.Path(file).name
        target.write_text(string.Template(text).safe_substitute(values))
        return target

    def folder(self, name):
        folder = self.scratch / name
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, "www-data", "www-data")
        return folder

    def server(self, name, command, port=None, environment=None, scheme="http"):
        return Server(name, command, self.scratch, self.core, port, environment, scheme)


def start_eyewall(ground):
    return ground.server("eyewall", [
        ground.programs.eyewall(), "serve", "--listen", "127.0.0.1:0", "--cache", ground.scratch / "volume.eyewall",
        "--size", VOLUME_SIZE, "--origin", ground.origin])


def start_eyewall_tls(ground):
    config = ground.template("eyewall-tls.toml", 0, certificates=ground.certificates, size=VOLUME_SIZE)
    return ground.server("eyewall", [ground.programs.eyewall(), "serve", "--config", config], scheme="https")


def start_eyewall_observed(ground):
    """With an access log, metrics and an administration; `observers` looks at both."""
    metrics_port = free_port()
    config = ground.template("eyewall-observed.toml", 0, metrics_port=metrics_port, size=VOLUME_SIZE)
    server = ground.server("eyewall", [ground.programs.eyewall(), "serve", "--config", config])
    server.metrics_port, server.administration = metrics_port, ground.scratch / "admin.sock"
    return server


def start_nginx(ground, nopush="off", scheme="http", **more):
    port = free_port()
    ground.folder("cache")
    words = {"listen_words": "", "tls_words": "", "cache_words": NGINX_CACHE, **more}
    template = ground.template("nginx.conf", port, nopush=nopush, **words)
    return ground.server("nginx", [program("nginx"), "-p", ground.scratch, "-c", template], port, scheme=scheme)


def start_nginx_tls(ground):
    # Keys of tickets as ours: made at the start, shared by all connections. A cache of sessions would only cost it memory.
    words = (f"ssl_certificate {ground.certificates}/server.pem; ssl_certificate_key {ground.certificates}/server.key; "
             "ssl_protocols TLSv1.3; ssl_session_tickets on; ssl_session_timeout 1h;")
    return start_nginx(ground, scheme="https", listen_words="ssl", tls_words=words)


def start_nginx_nopush(ground):
    return start_nginx(ground, "on")


def start_nginx_passing(ground):
    """It stores nothing."""
    return start_nginx(ground, cache_words="")


def start_varnish(ground):
    port = free_port()
    return ground.server("varnish", [
        program("varnishd"), "-F", "-j", "none", "-n", ground.scratch / "varnish", "-a", f"127.0.0.1:{port}",
        "-f", ground.template("varnish.vcl", port), "-s", "malloc,256m", "-p", "thread_pools=1", "-p", "listen_depth=4096"], port)


def start_apache(ground):
    port = free_port()
    ground.folder("cache")
    return ground.server("apache", [program("apache2"), "-DFOREGROUND", "-f", ground.template("apache.conf", port)], port)


def start_trafficserver(ground):
    port = free_port()
    for name in ("cache", "logs", "run"):
        ground.folder(name)
    for name in ("records.config", "remap.config", "storage.config", "ip_allow.yaml"):
        ground.template(f"trafficserver/{name}", port)
    layout = ground.template("trafficserver/runroot.yaml", port)
    return ground.server("trafficserver", [program("traffic_server"), f"--run-root={layout}"], port)


def start_origin(ground):
    return ground.server("origin", [ground.programs.bench_http(), "origin"])


def start_bare(ground):
    return ground.server("bare", [ground.programs.bench_http(), "serve"])


def start_bare_proxy(ground):
    return ground.server("bare-proxy", [ground.programs.bench_http(), "proxy", ground.origin])


def start_pages(kind):
    """A page cache on a store of the engine's benchmark, 256 MB of it."""
    def start(ground):
        return ground.server(kind, [ground.programs.bench_http(), "store", "--store", kind, "--directory", ground.folder("store"),
                                    "--cap", 256, ground.origin])
    return start


def start_nginx_files(ground):
    port = free_port()
    template = ground.template("nginx-files.conf", port, files=ground.files)
    return ground.server("nginx", [program("nginx"), "-p", ground.scratch, "-c", template], port)


def start_framework(name):
    """A web framework that serves a folder of files, with one worker, since there is one core."""
    def start(ground):
        return ground.server(name, [ground.programs.bench_frameworks(), "--server", name, "--root", ground.files, "--workers", 1,
                                    *(["--volume", ground.scratch / "volume.eyewall"] if name.endswith("-eyewall") else [])])
    return start


# The ways to start `eyewall serve`. They need only the program.
EYEWALL_SERVE = (start_eyewall, start_eyewall_tls, start_eyewall_observed)


class Contender(NamedTuple):
    """A store in the records: what it is, how to start it, and which program that isn't ours prints its version for which argument, or
    the crates that it consists of."""
    kind: str
    start: Callable
    program: str = ""
    version: str = ""
    crates: tuple = ()

    def missing(self, programs):
        """Why the server isn't available here; None if it is."""
        try:
            if self.start in EYEWALL_SERVE:
                programs.eyewall()
            elif self.program:
                program(self.program)
        except Failed as error:
            return f"{error} (apt-get install {PACKAGES[self.program]})" if self.program else str(error)
        return None

    def told_version(self, programs):
        """The version that the program prints; None if there is no such program."""
        if self.start in EYEWALL_SERVE:
            return _first_line(programs.eyewall(), "--version")
        if self.crates:
            return ", ".join(f"{crate} {_locked(crate)}" for crate in self.crates)
        return _first_line(program(self.program), self.version) if self.program else None

    def as_store(self, programs):
        """The form in record.json."""
        reason = self.missing(programs)
        if reason:
            return {"kind": self.kind, "version": None, "absent": reason}
        return {"kind": self.kind, "version": self.told_version(programs)}


def _first_line(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), None)


def _locked(crate):
    """The version of a crate in the build, from the lock file, which cargo enforces. The newest, if there are several."""
    packages = tomllib.loads(LOCK_FILE.read_text(encoding="utf-8"))["package"]
    return [package["version"] for package in packages if package["name"] == crate][-1]


SERVERS = {
    "eyewall serve": Contender("ours", start_eyewall),
    "nginx": Contender("other", start_nginx, "nginx", "-v"),
    "nginx-nopush": Contender("other", start_nginx_nopush, "nginx", "-v"),
    "nginx-passing": Contender("reference", start_nginx_passing, "nginx", "-v"),
    "varnish": Contender("other", start_varnish, "varnishd", "-V"),
    "apache": Contender("other", start_apache, "apache2", "-v"),
    "trafficserver": Contender("other", start_trafficserver, "traffic_server", "-V"),
    "no cache": Contender("reference", start_origin),
    "bare": Contender("reference", start_bare),
    "bare-proxy": Contender("reference", start_bare_proxy),
}
# The same over TLS.
TLS_SERVERS = {
    "eyewall serve": Contender("ours", start_eyewall_tls),
    "nginx": Contender("other", start_nginx_tls, "nginx", "-v"),
}
# The same server, and with all that shows what it does.
OBSERVED = {
    "eyewall serve": SERVERS["eyewall serve"],
    "eyewall (observed)": Contender("ours", start_eyewall_observed),
}
# Stores of the engine's benchmark under one server. Their names differ from those in the engine's workloads.
STORES = {
    "eyewall (HTTP)": Contender("ours", start_pages("eyewall")),
    "file-per-entry (HTTP)": Contender("other", start_pages("file-per-entry")),
    "bare": SERVERS["bare"],
}
# Files below one folder.
FRAMEWORKS = {
    "rocket-eyewall": Contender("ours", start_framework("rocket-eyewall"), crates=("eyewall-rocket", "rocket")),
    "rocket-namedfile": Contender("other", start_framework("rocket-namedfile"), crates=("rocket",)),
    "tower-eyewall": Contender("ours", start_framework("tower-eyewall"), crates=("eyewall-tower", "axum")),
    "tower-http-servedir": Contender("other", start_framework("tower-http-servedir"), crates=("tower-http", "axum")),
    "actix-files": Contender("other", start_framework("actix-files"), crates=("actix-files", "actix-web")),
    "nginx (files)": Contender("reference", start_nginx_files, "nginx", "-v"),
}
ALL = {**STORES, **SERVERS, **OBSERVED, **FRAMEWORKS}
