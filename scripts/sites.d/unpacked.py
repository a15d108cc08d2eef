"""Debian packages whose files are wanted without their being installed.

WordPress as a package brings a web server, which it starts, and machines are often set up to leave documentation out. So
they are fetched and unpacked into a folder that is kept; nothing of them runs, and no root is needed.
"""
import functools
import os
import re
import shutil
import subprocess

from servers import Failed

# Without recommended packages; with the theme of a new site, and its dependencies.
WORDPRESS = (
    "wordpress", "wordpress-theme-twentytwentythree", "libjs-cropper", "libjs-prototype", "libjs-scriptaculous",
    "libjs-underscore", "php-getid3",
)
MEDIAWIKI = ("mediawiki", "mediawiki-classes")
DOKUWIKI = (
    "dokuwiki", "libphp-simplepie", "php-geshi", "php-phpseclib", "libjs-jquery", "libjs-jquery-ui", "libjs-jquery-cookie",
)
# The package of this name is empty except for its dependency.
PYTHON_DOC = "python3-doc"


@functools.cache
def wordpress(kept):
    """The folder of WordPress."""
    return _tree(kept, "wordpress", WORDPRESS) / "usr/share/wordpress"


@functools.cache
def mediawiki(kept):
    """The folder of MediaWiki."""
    return _tree(kept, "mediawiki", MEDIAWIKI) / "usr/share/mediawiki"


@functools.cache
def dokuwiki(kept):
    """The folder of DokuWiki and its libraries, each at its place below."""
    return _tree(kept, "dokuwiki", DOKUWIKI)


@functools.cache
def python_doc(kept):
    """The folder of the HTML documentation of Python."""
    says = _apt("apt-cache", "show", "--no-all-versions", PYTHON_DOC)
    found = re.search(r"^Depends:.*?(python3\.\d+-doc)", says, re.MULTILINE)
    if not found:
        raise Failed(f"apt-cache does not say what {PYTHON_DOC} depends on")
    tree = _tree(kept, PYTHON_DOC, (found[1], "libjs-jquery", "libjs-underscore"))
    folder = tree / "usr/share/doc" / found[1].removesuffix("-doc") / "html"
    # Links into other packages point outside of the served folder, where nobody follows them.
    for link in [path for path in folder.rglob("*") if path.is_symlink()]:
        file = link.resolve(strict=True)
        link.unlink()
        shutil.copy2(file, link)
    return folder


def _tree(kept, name, packages):
    """Unpacks these packages, and keeps the result while their versions are current."""
    folder = kept / name
    stamp = folder / "unpacked.txt"
    wanted = _versions(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    fetched = folder / "fetched"
    fetched.mkdir(parents=True)
    # As root, apt prefers to fetch as a user who can't write here, and warns.
    _apt("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages, folder=fetched)
    for package in sorted(fetched.iterdir()):
        _apt("dpkg-deb", "--extract", str(package), str(folder))
    shutil.rmtree(fetched)
    stamp.write_text(wanted)
    return folder


def _versions(packages):
    says = _apt("apt-cache", "show", "--no-all-versions", *packages)
    found = dict(re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)", says, re.MULTILINE))
    missing = [package for package in packages if package not in found]
    if missing:
        raise Failed(f"no Debian package {', '.join(missing)} can be had (apt-get update)")
    return "".join(f"{package} {found[package]}\n" for package in packages)


def _apt(*command, folder=None):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | {"LC_ALL": "C"})
    except FileNotFoundError:
        raise Failed(f"{command[0]} is missing, which unpacks Debian's packages") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
