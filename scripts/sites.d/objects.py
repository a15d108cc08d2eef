"""The plugin for WordPress and its drop-in: installed as an administrator does it, then edits purge pages, and PHP processes share objects."""
import html
import json
import re
import secrets

from visitor import expect
from wordpress import HOST, PLUGIN

STATUS = "/wp-admin/tools.php?page=eyewall"


def installed(stage):
    """an administrator installs the plugin and the drop-in, and nobody else can"""
    editor = stage.logged_in(stage.site.editor)
    link = re.search(r'href="(plugins\.php\?action=activate&amp;plugin=eyewall[^"]*)"', editor.get("/wp-admin/plugins.php").text)
    expect(link, "the plugin can be activated")
    reply = editor.get("/wp-admin/" + html.unescape(link[1]))
    expect(reply.status == 302 and "activate=true" in reply.field("location"), "it is activated", reply)
    page = editor.get(STATUS)
    expect(page.status == 200 and ">absent<" in page.text, "the drop-in isn't there yet", page)
    nonce = re.search(r'name="_wpnonce" value="(\w+)"', page.text)[1]

    drop_in = stage.site.folder / "wp-content/object-cache.php"
    ada = stage.logged_in(stage.site.users[0])
    for visitor, given in ((editor, "invented"), (ada, nonce), (stage.visitor(), nonce)):
        reply = press(visitor, "install", given)
        expect(reply.status in (400, 403) and not drop_in.exists(), "without the right, or the form, nothing is installed", reply)
    expect(ada.get(STATUS).status == 403, "an author sees no status page")

    expect(press(editor, "install", nonce).status == 302, "the button is pressed")
    expect(drop_in.read_bytes() == (PLUGIN / "object-cache.php").read_bytes(), "the drop-in is installed")
    page = editor.get(STATUS)
    for text in (">installed<", "in the volume", "Hit ratio", "purged by the server at"):
        expect(text in page.text, f"the status page says {text!r}", page)


def press(visitor, button, nonce):
    return visitor.post("/wp-admin/admin-post.php", {"action": "eyewall", "do": button, "_wpnonce": nonce})


def edit_purges(stage):
    """an edit is seen at once, wherever the post is shown, and the pages without it stay stored"""
    post, other = stage.site.posts[-1], stage.site.posts[3]
    paths = (f"/{post.name}/", "/", "/feed/")
    # Stored by a site without the plugin, they have no tags.
    stage.purge_all()
    for path in paths:
        expect(post.mark in stage.hit(stage.visitor(), path).text, f"{path} shows the post before it is edited")
    stage.hit(stage.visitor(), f"/{other.name}/")
    tags = stage.visitor(directly=True).get(f"/{post.name}/").field("surrogate-key").split()
    expect("site" in tags and f"post-{post.number}" in tags and f"post-{other.number}" not in tags, f"the page has tags: {tags}")
    old = post.mark
    stage.edit(post)
    for path in paths:
        reply = stage.visitor().get(path)
        expect(post.mark in reply.text and old not in reply.text, "the edit is seen", reply)
    reply = stage.visitor().get(f"/{other.name}/")
    expect(reply.is_hit, "the page of another post is still stored", reply)


def new_post(stage):
    """a new post is seen at once, where lists show it, and at an address that had nothing"""
    name, mark = f"new-{secrets.token_hex(4)}", f"mark{secrets.token_hex(6)}"
    path = f"/{name}/"
    stage.visitor().get(path)
    expect(stage.visitor().get(path).status == 404, "there is nothing yet")
    for shown in ("/", "/feed/"):
        stage.hit(stage.visitor(), shown)
    editor = stage.logged_in(stage.site.editor)
    nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    new = json.dumps({"title": mark, "content": mark, "slug": name, "status": "publish"})  # tidy: word, the library's
    reply = editor.ask("POST", "/wp-json/wp/v2/posts", new.encode(), content_type="application/json", x_wp_nonce=nonce)
    expect(reply.status == 201, "the post is published", reply)
    for shown in ("/", "/feed/", path):
        reply = stage.visitor().get(shown)
        expect(reply.status == 200 and mark in reply.text, "the new post is seen", reply)


def button_purges(stage):
    """the button purges all pages, and the other one flushes the objects"""
    editor = stage.logged_in(stage.site.editor)
    stage.hit(stage.visitor(), "/post-4/")
    nonce = re.search(r'name="_wpnonce" value="(\w+)"', editor.get(STATUS).text)[1]
    for button, words in (("purge", "All+pages+are+purged"), ("flush", "The+object+cache+is+flushed")):
        location = press(editor, button, nonce).field("location")
        expect(words in location.replace("%20", "+"), f"{button}: {location}")
    expect(not stage.visitor().get("/post-4/").is_hit, "the page was purged")


def shared(stage):
    """PHP processes share the objects: another one finds them, and all see its changes"""
    value = secrets.token_hex(6)
    stage.site.script(f"wp_cache_set('shared', ['{value}'], 'sites');")
    found = stage.site.script("echo wp_using_ext_object_cache() ? 'external ' : '', wp_cache_get('shared', 'sites')[0] ?? 'nothing';")
    expect(found == f"external {value}", f"another process finds {found}")
    # Options are an object that each request reads: the server's processes would show their own copies.
    title = f"Title {value}"
    for _ in range(3):
        stage.visitor(directly=True).get("/")
    stage.site.script(f"update_option('blogname', '{title}');")
    for _ in range(8):
        page = stage.visitor(directly=True).get("/").text
        expect(title in page, "all processes of the server see the change of another")
    expect(title in stage.visitor().get("/").text, f"and {HOST}'s pages were purged")


ALL = (installed, edit_purges, new_post, button_purges, shared)
