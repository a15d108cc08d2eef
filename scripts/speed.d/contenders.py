"""The servers that are compared: how each is started, and what its processes use."""
import os
import pathlib
import shutil
import string
import subprocess

from servers import Server, free_port, program

HERE = pathlib.Path(__file__).resolve().parent
VOLUME_SIZE = "256M"


class Ground:
    """What the servers are started with."""

    def __init__(self, scratch, core, origin, eyewall, bench_http, descriptors):
        self.scratch, self.core, self.origin, self.descriptors = scratch, core, origin, descriptors
        self.eyewall, self.bench_http = eyewall, bench_http

    def template(self, file, port, **more):
        """A template of this folder, filled in; its path."""
        host, origin_port = self.origin.split("//", 1)[1].split(":")
        is_root = os.geteuid() == 0
        values = {
            "scratch": self.scratch, "port": port, "origin": f"{host}:{origin_port}", "origin_host": host,
            "origin_port": origin_port, "descriptors": self.descriptors,
            # Who is root has to name another for the workers; for all others the servers take no notice.
            "user": "www-data" if is_root else "nobody", "group": "www-data" if is_root else "nogroup",
            "apache_modules": "/usr/lib/apache2/modules", **more,
        }
        text = (HERE / file).read_text()
        # nginx's own variables have no braces, Apache's none of these names.
        target = self.scratch / f"{port}-{file}"
        target.write_text(string.Template(text).safe_substitute(values))
        return target

    def folder(self, name):
        folder = self.scratch / name
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, "www-data", "www-data")
        return folder


def start_eyewall(ground):
    command = [ground.eyewall, "serve", "--listen", "127.0.0.1:0", "--cache", ground.scratch / "volume.eyewall",
               "--size", VOLUME_SIZE, "--origin", ground.origin]
    return Server("eyewall", command, ground.scratch, ground.core)


def start_nginx(ground, name="nginx", nopush="off"):
    port = free_port()
    ground.folder(f"{name}-cache")
    template = ground.template("nginx.conf", port, name=name, nopush=nopush)
    return Server(name, [program("nginx"), "-p", ground.scratch, "-c", template], ground.scratch, ground.core, port)


def start_nginx_nopush(ground):
    return start_nginx(ground, "nginx-nopush", "on")


def start_varnish(ground):
    port = free_port()
    command = [program("varnishd"), "-F", "-j", "none", "-n", ground.scratch / "varnish",
               "-a", f"127.0.0.1:{port}", "-f", ground.template("varnish.vcl", port), "-s", "malloc,256m",
               "-p", "thread_pools=1", "-p", "listen_depth=4096"]
    return Server("varnish", command, ground.scratch, ground.core, port)


def start_apache(ground):
    port = free_port()
    ground.folder("apache-cache")
    command = [program("apache2"), "-DFOREGROUND", "-f", ground.template("apache.conf", port)]
    return Server("apache", command, ground.scratch, ground.core, port)


def start_bare(ground):
    return Server("bare", [ground.bench_http, "serve"], ground.scratch, ground.core)


def start_bare_proxy(ground):
    return Server("bare-proxy", [ground.bench_http, "proxy", ground.origin], ground.scratch, ground.core)


START = {
    "eyewall": start_eyewall,
    "nginx": start_nginx,
    "nginx-nopush": start_nginx_nopush,
    "varnish": start_varnish,
    "apache": start_apache,
}


def versions(eyewall):
    """What each program says that it is."""
    def first_line(*command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout.splitlines()[0].strip() if done.stdout else "unknown"

    return {
        "eyewall": first_line(eyewall, "--version"),
        "nginx": first_line(program("nginx"), "-v"),
        "varnish": first_line(program("varnishd"), "-V"),
        "apache": first_line(program("apache2"), "-v"),
        "ab": first_line(program("ab"), "-V"),
    }
