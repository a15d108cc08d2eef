"""The site in a browser, with and without the cache."""
from visitor import expect
from wordpress import HOST

# Names of screens, with width, height and whether it is a phone.
SCREENS = (("desktop", 1280, 900, False), ("phone", 390, 844, True))


def browsed(stage, driver, pictures):
    """Chromium shows through the cache what the site itself shows, without a complaint; who logs in sees the bar"""
    post = stage.site.posts[3]
    paths = ("/", f"/{post.name}/")
    # Nothing may remain of the site from before its last edit.
    stage.purge_all()
    with driver.browser(HOST, _address(stage.site.url)) as browser:
        expected = {path: _shown(browser, path) for path in paths}
    with driver.browser(HOST, _address(stage.server.url)) as browser:
        # The first time it is stored; the second time it comes from the cache.
        for _ in range(2):
            for path in paths:
                _expect_same(expected[path], _shown(browser, path), path)
        expect(post.mark in expected[f"/{post.name}/"]["text"], "the text of the post is on the screen")
        for name, width, height, is_phone in SCREENS:
            browser.size(width, height, is_phone)
            for path in paths:
                _shown(browser, path)
                width_of_page = browser.run("return document.documentElement.scrollWidth")
                expect(width_of_page <= width, f"{path} is {width_of_page} wide on a {name} of {width}")
                browser.screenshot(pictures / f"{name}-{path.strip('/') or 'front'}.png")
        _logged_in(stage, browser, pictures)
    # The browser was logged in; the next visitor isn't.
    with driver.browser(HOST, _address(stage.server.url)) as browser:
        for path in paths:
            _expect_same(expected[path], _shown(browser, path), path)


def _logged_in(stage, browser, pictures):
    user = stage.site.users[0]
    name, width, height, is_phone = SCREENS[0]
    browser.size(width, height, is_phone)
    browser.show(f"http://{HOST}/wp-login.php?redirect_to=%2F")
    browser.type("#user_login", user.login)
    browser.type("#user_pass", user.password)
    browser.click("#wp-submit")
    browser.wait_until("document.querySelector('#wpadminbar')", "the bar of who is logged in is shown")
    expect(browser.run("return location.pathname") == "/", "logging in leads to the front page")
    bar = browser.run("return document.querySelector('#wpadminbar').textContent")
    expect(user.name in bar, f"the bar is that of {user.login}, not {bar[:200]!r}")
    browser.screenshot(pictures / f"{name}-logged-in.png")
    _expect_calm(browser, "logging in")


def _shown(browser, path):
    """A page's text, and the addresses and kinds of everything that it loaded."""
    browser.show(f"http://{HOST}{path}")
    _expect_calm(browser, path)
    return {
        "text": browser.run("return document.body.innerText"),
        "elements": browser.run("return document.querySelectorAll('*').length"),
        "styles": browser.run("return [...document.styleSheets].map(sheet => sheet.href)"),
        "title": browser.run("return document.title"),
    }


def _expect_same(expected, found, path):
    for name, value in expected.items():
        expect(found[name] == value, f"{path}: its {name} is {found[name]!r}, and {value!r} past the cache")


def _expect_calm(browser, doing):
    complaints = browser.complaints()
    expect(not complaints, f"{doing}: {'; '.join(complaints)}")


def _address(url):
    return url.removeprefix("http://")
