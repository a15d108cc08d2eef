"""The documentation of Python, a tree of a thousand files: served as a folder, and by an origin behind the cache."""
import collections
import html
import re
import sys
import urllib.parse

import unpacked
from servers import Server, free_port
from visitor import Visitor, expect

# The volume must hold the whole tree, so that the second round finds everything.
VOLUME_SIZE = "256M"
# If links reach fewer pages, the crawl didn't follow them.
UNLINKED_SHARE_MAX = 0.1
LINK = re.compile(r"<[a-z][^<>]*\s(?:href|src)=[\"']?([^\"'\s>]+)")


def as_folder(ground):
    """the documentation of Python as a folder comes as its files are, the second time from the volume"""
    tree = unpacked.python_doc(ground.kept)
    _crawled_twice(tree, _served(ground, "root", "--root", tree))


def behind_the_cache(ground):
    """the same from an origin comes as its files are, the second time from the volume"""
    tree, port = unpacked.python_doc(ground.kept), free_port()
    origin = Server("python", [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", tree, port],
                    ground.scratch, port=port)
    ground.running.append(origin)
    _crawled_twice(tree, _served(ground, "proxy", "--origin", origin.url))


def _served(ground, name, *source):
    command = [ground.program, "serve", "--listen", "127.0.0.1:0", "--size", VOLUME_SIZE, *source]
    server = Server(name, command, ground.scratch)
    ground.running.append(server)
    return server.url


def _crawled_twice(tree, url):
    files = {f"/{path.relative_to(tree).as_posix()}": path for path in tree.rglob("*") if path.is_file()}
    # Hidden files aren't served.
    files = {path: file for path, file in files.items() if "/." not in path}
    visitor = Visitor(url)
    linked = _linked(files, visitor)
    found = {path for path in linked if _file(files, path)}
    pages = {path for path in files if path.endswith(".html")}
    unlinked = pages - found
    expect(len(unlinked) <= len(pages) * UNLINKED_SHARE_MAX, f"{len(unlinked)} of {len(pages)} pages aren't linked to")
    # Equal pages have equal links.
    for path in linked:
        reply = _compared(files, visitor, path)
        expect(path not in found or reply.is_hit, "the second time it is a hit", reply)
    # The sources of the pages, to which Debian's pages have no links.
    rest = sorted(files.keys() - found)
    for path in rest:
        _compared(files, visitor, path)
        reply = _compared(files, visitor, path)
        expect(reply.is_hit, "the second time it is a hit", reply)
    print(f"    {len(found)} files by links, {len(linked) - len(found)} links to none, {len(rest)} files more", flush=True)


def _linked(files, visitor):
    """The paths that links reach from the index, each compared with its file."""
    found, todo = ["/"], collections.deque(["/"])
    seen = set(found)
    while todo:
        path = todo.popleft()
        reply = _compared(files, visitor, path)
        if reply.status == 200 and reply.field("content-type").startswith("text/html"):
            new = [link for link in _links(path, reply.text) if link not in seen]
            seen.update(new)
            found.extend(new)
            todo.extend(new)
    return found


def _file(files, path):
    return files.get(path + "index.html" if path.endswith("/") else path)


def _compared(files, visitor, path):
    """The response for a path, which must equal its file."""
    file, reply = _file(files, path), visitor.get(urllib.parse.quote(path))
    expect(reply.status == (200 if file else 404), "what is a file is found, and nothing else is", reply)
    expect(file is None or reply.body == file.read_bytes(), "the bytes are those of the file", reply)
    return reply


def _links(path, text):
    """The paths of a page's links on the same server, decoded, in order."""
    links = {html.unescape(link) for link in LINK.findall(text)}
    there = (urllib.parse.urlsplit(urllib.parse.urljoin(f"http://here{path}", link)) for link in links)
    return sorted({urllib.parse.unquote(url.path) for url in there if url.scheme == "http" and url.netloc == "here"})
