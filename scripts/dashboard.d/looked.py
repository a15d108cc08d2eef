"""The dashboard in a browser: it is live, agrees with clients, explains, purges with the token only, and fits each screen."""
import time

from ground import TOKEN
from servers import Failed

# Names of what is looked at, with width, whether it is a phone, and what the system prefers.
SCREENS = (("light", 1440, False, "light"), ("dark", 1440, False, "dark"), ("middle", 900, False, "light"), ("phone", 390, True, "light"),
           ("phone-dark", 390, True, "dark"))
# For how long clients ask before somebody looks.
LOAD_SECONDS = 10
SCREEN_LOAD_SECONDS = 20


def expect(holds, words):
    if not holds:
        raise Failed(f"not so: {words}")


def opened(ground, browser):
    browser.show("about:blank")
    browser.show(ground.url)
    browser.wait_until("Number(document.body.dataset.shown) > 1 && document.getElementById('state').innerText === 'live'", "the page is live")


def text(browser, id_):
    return browser.run(f"return document.getElementById('{id_}').innerText")


def calm(browser, doing):
    complaints = browser.complaints()
    expect(not complaints, f"{doing} without complaints, which are {'; '.join(complaints)[:1000]}")


def its_figures_are_those_of_clients(ground, browser):
    """The page is live, and its figures are those that clients counted"""
    opened(ground, browser)
    count, _ = ground.load(LOAD_SECONDS)
    # A shared cache is at its best with the same requests again.
    browser.click("label[for=window-start]")
    # The page writes numbers with commas.
    legend = "[...document.querySelectorAll('#legend small')].reduce((sum, one) => sum + Number(one.innerText.split(' ')[0].replaceAll(',', '')), 0)"
    browser.wait_until(f"{legend} >= {count}", f"it shows {count} requests")
    expect(browser.run(f"return {legend}") == count, f"it shows {count} requests, not {browser.run(f'return {legend}')}")
    share = text(browser, "spared-share")
    expect(share.endswith(" %") and float(share.split()[0]) > 30, f"a share is spared, {share}")
    sites = browser.run("return [...document.querySelectorAll('#sites tr')].map(one => one.children[0].innerText)")
    expect(sites[0] == "www.example.org" and "of no site" in sites, f"all sites are shown: {sites}")
    expect(browser.run("return document.querySelectorAll('#chart path').length") >= 4, "the area has the verdicts")
    expect("basket" in text(browser, "missed"), "the most missed keys are shown")
    expect(" ms" in text(browser, "slowest") and "example.org/" in text(browser, "slowest"), "the slowest paths are shown")
    expect("NaN" not in browser.run("return document.body.innerText") and "undefined" not in browser.run("return document.body.innerText"), "all are numbers")
    calm(browser, "a load")


def the_advice_is_that_of_the_server(ground, browser):
    """The advice is asked for while the page is visible, and shown with sizes, misses and lines of the configuration"""
    ground.load(LOAD_SECONDS)
    opened(ground, browser)
    browser.wait_until("document.querySelectorAll('#advice-sizes tr').length === 4", "the four sizes are shown")
    browser.wait_until("document.querySelectorAll('#advice-misses tr').length > 2", "reasons of misses are shown")
    told = text(browser, "advice")
    for words in ("now", "the first request for its address", "www.example.org", "What would help"):
        expect(words in told, f"{words} is part of {told}")
    expect("NaN" not in told and "undefined" not in told, f"all are numbers: {told}")
    calm(browser, "advice")


def an_address_is_explained(ground, browser):
    """A key is explained by a click, and an address by the keyboard"""
    opened(ground, browser)
    ground.get("www.example.org", "/page/1?utm_source=mail")
    browser.type("#url", "http://www.example.org/page/1?utm_source=mail\ue007")
    browser.wait_until("document.querySelector('#explanation .verdict')", "an explanation comes")
    told = text(browser, "explanation")
    for words in ("hit", "the stored response is fresh", "http://www.example.org/page/1", "utm_source=mail", "strip_query", "RFC 9111", "Before", "ago: "):
        expect(words in told, f"{words} is part of {told}")
    expect("client" not in told, f"nobody is its client: {told}")
    browser.run("document.getElementById('from').value = '192.0.2.7'; document.querySelector('#explain button').click()")
    browser.wait_until("document.getElementById('explanation').innerText.includes('192.0.2.7 by http')", "the client is told")
    browser.run("document.getElementById('from').value = ''")
    browser.run("document.querySelector('#missed button').click()")
    browser.wait_until("document.getElementById('url').value !== 'http://www.example.org/page/1?utm_source=mail'", "the key is looked up")
    browser.run("document.getElementById('url').value = 'http://unknown.example.org/'; document.querySelector('#explain button').click()")
    browser.wait_until("document.getElementById('explanation').innerText.includes('no site')", "it says that no site has the host")
    # The chart is read by the keyboard, too.
    browser.run("document.getElementById('chart').focus()")
    browser.type("#chart", "\ue011")
    browser.wait_until("document.getElementById('chart-words').innerText.includes(' ago: ')", "the chart is read at its start")
    calm(browser, "looking up")


def nothing_is_purged_without_the_token(ground, browser):
    """Without the token nothing is purged; with it, the purge is seen to arrive"""
    opened(ground, browser)
    ground.get("www.example.org", "/page/1")
    browser.run("document.getElementById('name').value = 'http://www.example.org/page/1'; document.querySelector('button[value=purge]').click()")
    browser.wait_until("document.getElementById('token-dialog').open", "it asks for the token")
    expect("hit" in ground.get("www.example.org", "/page/1"), "nothing was purged")
    browser.complaints()
    browser.type("#token", f"{TOKEN}\ue007")
    browser.wait_until("!document.getElementById('token-dialog').open", "the dialog closes")
    browser.wait_until("document.getElementById('state').innerText === 'live'", "the page is live again")
    browser.click("button[value=preview]")
    browser.wait_until("document.getElementById('purge-words').innerText.includes('would purge 1 entry')", "it says what it would purge")
    expect("hit" in ground.get("www.example.org", "/page/1"), "a preview purges nothing")
    browser.click("button[value=purge]")
    browser.wait_until("document.getElementById('purges').innerText.includes('http://www.example.org/page/1')", "the purge arrives")
    expect("hit" not in ground.get("www.example.org", "/page/1"), "it is purged")
    kept = browser.run("return [document.cookie, JSON.stringify({...localStorage}), JSON.stringify({...sessionStorage}), location.href].join()")
    expect(TOKEN not in kept and kept.startswith(",{},{}"), f"the token is kept nowhere: {kept}")
    # With another token, the page follows another stream.
    complaints = [one for one in browser.complaints() if "ERR_ABORTED" not in one]
    expect(not complaints, f"purging without complaints, which are {complaints}")


def another_site_changes_nothing(ground, browser):
    """A form and a script of another site purge nothing, and see nothing"""
    ground.get("www.example.org", "/page/2")
    attack = ground.scratch / "attack.html"
    attack.write_text("""<form method="post" enctype="text/plain" action="http://dashboard.test/purge">
        <input name='{"everything": true, "x' value='": 1}'></form><script>
        fetch("http://dashboard.test/purge", {method: "POST", mode: "no-cors", body: '{"everything": true}'}).catch(() => {});
        fetch("http://dashboard.test/status").then((answer) => answer.text(), () => "nothing").then((seen) => {
            document.title = seen; setTimeout(() => document.forms[0].submit(), 300); });</script>""")
    browser.show(attack.as_uri())
    browser.wait_until("location.href.endsWith('/purge') || location.protocol === 'chrome-error:'", "the form is sent")
    expect("hit" in ground.get("www.example.org", "/page/2"), "nothing was purged")
    # The refusals are errors of the console.
    browser.complaints()


def fits(ground, browser, name, width, is_phone, scheme):
    browser.size(width, 900, is_phone)
    browser.scheme(scheme)
    time.sleep(1.5)
    wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    expect(wide[0] <= wide[1], f"{name} is as wide as the screen, not {wide}")
    # A picture of all of a phone's page is too large for slow machines.
    for part in ("main", "sites", "advice", "look", "errors"):
        browser.run(f"document.getElementById('{part}').scrollIntoView(); if ('{part}' === 'main') scrollTo(0, 0)")
        time.sleep(0.3)
        browser.screenshot(ground.pictures / f"{name}-{part}.png")
        if not is_phone:
            browser.size(width, browser.run("return document.documentElement.scrollHeight"), False)
            time.sleep(1)
            browser.screenshot(ground.pictures / f"{name}.png")
            break
    calm(browser, name)


def it_fits_each_screen(ground, browser):
    """It fits each screen, in light and dark, and all that can be used has a name"""
    opened(ground, browser)
    ground.get("www.example.org", "/page/3")
    browser.type("#url", "http://www.example.org/page/3\ue007")
    browser.wait_until("document.querySelector('#explanation .verdict')", "an explanation comes")
    browser.click("label[for=window-hour]")
    nameless = browser.run("""return [...document.querySelectorAll('button, input, select, textarea, svg[role], [role=img]')].filter(one =>
        !(one.labels?.length || one.innerText?.trim() || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby')
          || one.getAttribute('aria-describedby') || one.title)).map(one => one.outerHTML.slice(0, 90))""")
    expect(not nameless, f"these have no name: {nameless}")
    # So that there is something to see.
    loads = ground.begin(2)
    try:
        time.sleep(SCREEN_LOAD_SECONDS)
        for screen in SCREENS:
            fits(ground, browser, *screen)
    finally:
        ground.end(loads)
    browser.size(1440, 900, False)
    browser.scheme("light")


def without_script_it_is_a_table(ground, browser):
    """Without script it shows a table, and with reduced motion nothing moves"""
    browser.motion("reduce")
    opened(ground, browser)
    names = browser.run("return getComputedStyle(document.getElementById('state'), '::before').animationName")
    expect(names == "none", f"nothing moves, but {names}")
    browser.scripts(False)
    try:
        browser.show(ground.url)
        source = browser.source()
        expect("Why requests miss" in source, "the table has the advice")
        expect("Sites, since the start" in source and "www.example.org<td>" in source.replace("</th>", ""), "the table has the sites")
        browser.screenshot(ground.pictures / "without-script.png")
    finally:
        browser.scripts(True)


ALL = (its_figures_are_those_of_clients, the_advice_is_that_of_the_server, an_address_is_explained, nothing_is_purged_without_the_token, another_site_changes_nothing,
       it_fits_each_screen, without_script_it_is_a_table)
