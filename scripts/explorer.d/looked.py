"""The explorer in a browser: every view draws, controls change it, addresses restore it, files are saved."""
import csv
import json
import math
import statistics
import time
import xml.etree.ElementTree as xml

import form
import judged
from servers import Failed

# Names of what is looked at, with width, height, whether it is a phone, and what the system prefers.
SCREENS = (("light", 1280, 900, False, "light"), ("dark", 1280, 900, False, "dark"), ("phone", 390, 844, True, "light"),
           ("phone-dark", 390, 844, True, "dark"))
PATIENCE_SECONDS = 60
SVG = "{http://www.w3.org/2000/svg}"
# How many shapes a figure is drawn with, its text, and what is written in it.
DRAWN = """
    const figure = document.querySelector('.figure svg');
    return {shapes: figure ? figure.querySelectorAll('path').length : 0, drawing: figure ? figure.outerHTML : '',
            rows: document.querySelectorAll('main tbody tr').length, text: document.querySelector('main').innerText,
            missing: document.querySelectorAll('main .missing').length, kind: figure ? 'figure' : 'table'};
"""


def expect(holds, words):
    if not holds:
        raise Failed(f"not so: {words}")


class Page:
    """The page at an address, in a browser."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url

    def open(self, hash_=""):
        # Another document, so that nothing is left of the one before.
        self.browser.show("about:blank")
        self.browser.show(f"{self.url}{hash_}")
        self.wait(0)

    def wait(self, turn):
        self.browser.wait_until(f"Number(document.body.dataset.shown) > {turn}", "the page shows what its address says")

    def do(self, action, *given):
        """Does something that changes what is shown, and waits for that."""
        turn = self.turn()
        action(*given)
        self.wait(turn)

    def turn(self):
        return int(self.browser.run("return document.body.dataset.shown || 0"))

    def drawn(self):
        return self.browser.run(DRAWN)

    def address(self):
        return self.browser.run("return location.href")

    def expect_calm(self, doing):
        complaints = self.browser.complaints()
        expect(not complaints, f"{doing} without complaints, which are {'; '.join(complaints)[:1000]}")


def nothing_there(ground, page):
    """Without records, and where one is lost, it says how to get them"""
    says = "document.querySelector('main').innerText.includes('{}')"
    page.browser.show(f"{ground.bare.as_uri()}/index.html")
    page.browser.wait_until(says.format("make explorer"), "it says what to do")
    records = ground.bare / "records"
    records.mkdir()
    listed = {"id": "lost", "title": "Lost", "began": "2026-11-22", "kind": "whole", "machine": "invented", "isComplete": False, "merged": []}
    (records / "index.js").write_text(f"eyewallRecords.listed([{json.dumps(listed)}]);")  # tidy: word, the library's
    page.browser.show("about:blank")
    page.browser.show(f"{ground.bare.as_uri()}/index.html")
    page.browser.wait_until(says.format("record lost is listed"), "it says which record is lost")
    # Files that are not there are errors of the console.
    page.browser.complaints()


def every_view(ground, page):
    """Every view of every record draws its data, without a complaint"""
    count = 0
    for run in ground.runs:
        page.open(f"#record={run['id']}")
        expect(page.drawn()["rows"] > 0 or not any(one["comparisons"]
               for one in run["workloads"]), f"the overview of {run['id']} has rows")
        for workload in run["workloads"]:
            for view in workload["views"]:
                hash_ = f"#record={run['id']}&workload={workload['name']}&view={view['name']}"
                page.do(page.browser.run, f"location.hash = '{hash_}'")
                drawn = page.drawn()
                # Each store is a line or a mark at least, beside the axes.
                is_drawn = drawn["shapes"] > 8 if drawn["kind"] == "figure" else drawn["rows"] > 0
                expect(is_drawn and drawn["missing"] == 0, f"{hash_} is drawn ({drawn['shapes']} shapes, {drawn['rows']} rows)")
                expect("NaN" not in drawn["drawing"] and "undefined" not in drawn["text"], f"{hash_} is of numbers")
                count += 1
            if "skipped" in workload:
                page.do(page.browser.run, f"location.hash = '#record={run['id']}&workload={workload['name']}'")
                expect(workload["skipped"] in page.drawn()["text"], f"it says why {workload['name']} was not run")
        page.expect_calm(run["id"])
    expect(count > 60, f"there are many views, not {count}")


CHOSEN = "return document.getElementById('record').selectedOptions[0].innerText"


def the_whole_suite_first(ground, page):
    """It opens at the newest record that covers the suite, and shows runs of one commit as one"""
    browser = page.browser
    page.open()
    expect(browser.run(CHOSEN) == "2026-11-20: Invented for tests, invented-8cores", f"it opens at {browser.run(CHOSEN)}")
    options = browser.run("return [...document.getElementById('record').options].map(one => one.innerText)")
    partial = "2026-11-22: Invented for tests, invented-8cores (2 runs) (some workloads)"
    expect(options[0] == partial, f"a newer record of some workloads is listed first and named so: {options}")
    for name in ("invented-part-1", "invented-part-2", "invented-part-2.merged"):
        page.open(f"#record={name}")
        expect(browser.run(CHOSEN) == partial, f"{name} leads to {browser.run(CHOSEN)}")
        titles = browser.run("return [...document.querySelectorAll('#workloads a')].map(one => one.innerText)")
        expect(len(titles) == 4 and {"Concurrency", "Module comparison"} < set(titles), f"it has the workloads of both runs: {titles}")


def one_picture(ground, page):
    """The overview begins with one picture: wins and losses of every workload, against the best other store"""
    browser = page.browser
    page.open("#record=invented-a")
    told = browser.run("return document.getElementById('standing').innerText")
    expect(told == "Eyewall is ahead of the best other store in 6 of 8 measured cases and behind in 1; "
           "in 1 there is no clear difference.", told)
    picture = browser.run("return document.querySelector('.figure').outerHTML")
    for words in ("Concurrency", "3 ahead, 1 behind", "Disk or shared memory", "1 ahead, 1 no clear difference", "Realistic traffic",
                  "no ratio to another store", "Oversized cache", "not run"):
        expect(words in picture, f"the picture says {words}")
    rows = browser.run("return [...document.querySelector('details.data').querySelectorAll('tbody tr')]"
                       ".map(row => [...row.children].map(cell => cell.textContent))")
    verdicts = sorted(row[-1] for row in rows)
    expect(verdicts == ["ahead"] * 6 + ["behind", "no clear difference"], f"the table says the same: {verdicts}")
    lost, = (row for row in rows if row[-1] == "behind")
    expect(lost[3] == "quick_cache" and float(lost[4].rstrip("x")) < 1, f"the loss is told: {lost}")
    page.expect_calm("the picture")


def the_worst_first(ground, page):
    """Where others win and what is missed stands first, and is named so"""
    page.open("#record=invented-a")
    verdicts = page.browser.run("return [...document.querySelectorAll('.verdict')].map(one => one.innerText)")
    expect("others win" in verdicts[0], f"the first verdict is {verdicts[0]}")
    kinds = ["others win", "bar missed", "no clear difference", "bar met", "ahead"]
    order = [next((number for number, words in enumerate(kinds) if words in verdict), len(kinds)) for verdict in verdicts]
    first = order[:order.index(2)] if 2 in order else order
    expect(first == sorted(first) and 1 in order, f"they are ordered: {verdicts}")
    text = page.drawn()["text"]
    expect("A note why it is missed." in text, "the note of a missed bar is shown")
    expect("IPC::MM is absent: it can't be built" in text, "absent stores are named, with the reason")
    page.open("#record=invented-a&workload=concurrency&view=throughput")
    checked = page.browser.run("return [...document.querySelectorAll('input:checked + label')].map(one => one.innerText)")
    expect("1 MB" in checked and "ext4" in checked, f"the case that is to be shown first is: {checked}")


def the_same_figures(ground, page):
    """Medians, ranges and verdicts are those that `scripts/records` finds"""
    for path in ground.published:
        record = form.read(path)
        page.open(f"#record={path.name}")
        shown = page.browser.run(f"""
            return eyewallRecords.load('{path.name}')
                .then(record => record.run.workloads.flatMap(workload => Comparisons.ofWorkload(record, workload)))
                .then(all => all.map(({{spread, isMet}}) => [spread.median, spread.min, spread.max, isMet]));
        """)
        expected = [judgement for workload in record.run["workloads"] for judgement in judged.judgements(record, workload)]
        tally = [judgement.is_met for judgement in expected if judgement.is_met is not None]
        expect(len(shown) == len(expected), f"{path.name} has {len(expected)} comparisons, not {len(shown)}")
        expect(f"{sum(tally)} of {len(tally)}" in page.drawn()["text"] or not tally, f"of {path.name}, {sum(tally)} of {len(tally)} bars are met")
        # The page has an order of its own.
        for found, figures in zip(sorted(map(_digits, shown)), sorted(_digits([*judgement.spread, judgement.is_met]) for judgement in expected)):
            expect(found == figures, f"of {path.name}, a comparison is {figures}, not {found}")


def _digits(figures):
    """Median, range and verdict, to as many digits as two languages agree on."""
    *numbers, is_met = figures
    return [f"{number:.9g}" for number in numbers], str(is_met)


def significance(ground, page):
    """Whether two stores differ at all is asked by the rank sum test, and no is an answer"""
    page.open("#record=invented-a&workload=places&view=bars")
    for place, words in (("disk", "no clear difference"), ("shared memory", "ahead")):
        samples = {}
        for sample in ground.invented.samples:
            if sample["workload"] == "places" and sample["case"] == {"place": place}:
                samples.setdefault(sample["store"], []).append(sample["value"])
        expected = _rank_sum(*samples.values())
        found = page.browser.run(f"return Statistics.rankSum(...{list(samples.values())})")
        expect(abs(found - expected) < 1e-6, f"the p of {place} is {expected}, not {found}")
        expect((expected >= 0.05) == (place == "disk"), f"the invented figures of {place} are as they were meant: {expected}")
        verdict = page.browser.run(
            f"return [...document.querySelectorAll('.cards tr')].find(row => row.querySelector('th small')?.innerText === '{place}')"
            ".querySelector('.verdict').innerText")
        expect(words in verdict and "p " in verdict, f"the verdict of {place} is {words}, not {verdict}")
    few = page.browser.run("return Statistics.rankSum([1, 2, 3], [4, 5, 6])")
    expect(few is None, "too few samples have no answer")


def _rank_sum(left, right):
    """By counting pairs; all values differ."""
    wins = sum((ours > theirs) + (ours == theirs) / 2 for ours in left for theirs in right)
    mean, spread = len(left) * len(right) / 2, math.sqrt(len(left) * len(right) * (len(left) + len(right) + 1) / 12)
    return math.erfc(max(0, abs(wins - mean) - 0.5) / spread / math.sqrt(2))


def toggles(ground, page):
    """Scales, cases, stores, records and machines change what is shown, by mouse and by keyboard"""
    browser = page.browser
    page.open("#record=invented-a&workload=concurrency&view=throughput")
    seen = [page.drawn()]
    for selector, words in (("label[for=scale-y-1]", "y=linear"), ("label[for=scale-x-1]",
                            "x=linear"), ("label[for=case-size-0]", "case.size=100+B")):
        page.do(browser.click, selector)
        expect(words in page.address(), f"the address says {words}")
        seen.append(page.drawn())
    expect(len({one["drawing"] for one in seen}) == len(seen), "each of them draws another figure")
    page.do(browser.click, "#store-1")
    expect("hide=eyewall" in page.address(), "the address says which store is hidden")
    expect(page.drawn()["shapes"] < seen[-1]["shapes"], "a hidden store isn't drawn")
    # What had the focus has it still; arrows move among radio buttons.
    browser.run("document.getElementById('case-size-0').focus()")
    page.do(browser.type, "#case-size-0", "\ue014")
    expect("case.size=10+KB" in page.address(), "an arrow chooses the next")
    expect(browser.run("return document.activeElement.id") == "case-size-1", "the focus stays where it was")
    address = page.address()
    browser.run("document.querySelector('.skip').click()")
    expect(browser.run("return document.activeElement.id") == "main" and page.address() == address, "the first link skips to the figures")
    machine = browser.run("return document.getElementById('facts').textContent")
    page.do(browser.click, "label[for=machine-1]")
    expect("record=invented-a" not in page.address(), "another machine has other records")
    expect(browser.run("return document.getElementById('facts').textContent") != machine, "the facts are those of that machine")
    page.expect_calm("toggling")


def permalinks(ground, page):
    """An address shows in a new browser what it showed in the one before"""
    browser = page.browser
    page.open("#record=invented-b&workload=traffic&view=tails")
    for selector in ("label[for=case-caps-1]", "label[for=scale-x-1]", "#store-2"):
        page.do(browser.click, selector)
    address, before = page.address(), page.drawn()
    with ground.browser() as other:
        again = Page(other, ground.url)
        other.show(address)
        again.wait(0)
        after = again.drawn()
    expect(after["text"] == before["text"], "the same text")
    expect(after["drawing"].count("<path") == before["drawing"].count("<path"), "the same shapes")
    page.do(browser.run, "location.hash = '#record=nobody&workload=nothing&view=none&y=odd'")
    expect("Overview" in page.drawn()["text"], "an address of what isn't there leads to the overview")
    page.expect_calm("a strange address")


def downloads(ground, page):
    """Figures are saved as SVG, with legend and source, and as CSV, with the figures of the record"""
    browser = page.browser
    folder = ground.scratch / "saved"
    folder.mkdir()
    browser.downloads_to(folder)
    page.open("#record=invented-a&workload=concurrency&view=throughput&case.size=100+B&case.storage=tmpfs")
    for name in ("svg", "csv"):
        browser.click(f"#{name}")
    base = folder / "invented-a-concurrency-throughput"
    picture = xml.fromstring(_saved(base.with_suffix(".svg")))
    expect(picture.tag == f"{SVG}svg", "the SVG is one")
    words = " ".join("".join(text.itertext()) for text in picture.iter(f"{SVG}text"))
    for word in ("eyewall", "file-per-entry", "Concurrency: Throughput: 100 B, tmpfs", "Invented CPU"):
        expect(word in words, f"the SVG says {word}: {words}")
    expect(len(list(picture.iter(f"{SVG}path"))) > 40, "the SVG has lines and marks")
    rows = list(csv.DictReader(_saved(base.with_suffix(".csv")).splitlines()))
    case = {"readers": 64, "size": "100 B", "storage": "tmpfs"}
    values = [sample["value"] for sample in ground.invented.samples if sample["workload"]
        == "concurrency" and sample["store"] == "sqlite" and sample["case"] == case]
    found, = (row for row in rows if row["store"] == "sqlite" and row["readers"] == "64")
    expected = {"median [1/s]": statistics.median(values), "min": min(values), "max": max(values)}
    for name, value in expected.items():
        expect(abs(float(found[name]) - value) < 1e-6 * value, f"the CSV's {name} is {value}, not {found[name]}")
    expect(len(rows) == 7 * 6, f"the CSV has all points, not {len(rows)}")
    for view in ("workload=concurrency&view=bars", "workload=modules&view=table",
                 "workload=traffic&view=percentiles", "workload=traffic&view=footprint"):
        page.open(f"#record=invented-a&{view}")
        browser.click("#csv")
        workload, name = (part.split("=")[1] for part in view.split("&"))
        rows = list(csv.reader(_saved(folder / f"invented-a-{workload}-{name}.csv").splitlines()))
        expect(len(rows) > 2 and len({len(row) for row in rows}) == 1, f"the CSV of {view} is a table")
    page.expect_calm("saving")


def _saved(path):
    """A file that the browser saves, once it is whole."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists() or not path.stat().st_size:
        if time.monotonic() > deadline:
            raise Failed(f"{path.name} was not saved")
        time.sleep(0.05)
    return path.read_text(encoding="utf-8")


def screens(ground, page):
    """It fits a desktop and a phone, light and dark; the screenshots are kept"""
    browser = page.browser
    views = {"overview": "", "curve": "&workload=concurrency&view=throughput&case.size=100+B", "dots": "&workload=concurrency&view=one",
             "tails": "&workload=traffic&view=tails", "percentiles": "&workload=traffic&view=percentiles",
             "footprint": "&workload=traffic&view=footprint", "batches": "&workload=sweep&view=batches", "hits": "&workload=replay&view=hits",
             "bars": "&workload=concurrency&view=bars", "modules": "&workload=modules&view=table"}
    for name, width, height, is_phone, scheme in SCREENS:
        browser.size(width, height, is_phone)
        browser.scheme(scheme)
        for view, hash_ in views.items():
            page.open(f"#record=invented-a{hash_}")
            wide = browser.run("return document.documentElement.scrollWidth")
            expect(wide <= width, f"{view} is {wide} wide on a screen of {width}")
            paper = browser.run("return getComputedStyle(document.querySelector('main')).backgroundColor")
            expect((paper == "rgb(255, 255, 255)") == (scheme == "light"), f"the paper of {name} is {paper}")
            browser.screenshot(ground.pictures / f"{view}-{name}.png")
    page.expect_calm("other screens")


def over_http(ground, page):
    """A static server serves it as well"""
    with ground.browser() as browser:
        served = Page(browser, "http://explorer.test/index.html")
        served.open("#record=invented-a&workload=replay&view=hits")
        expect(served.drawn()["shapes"] > 20, "the figure is drawn")
        served.expect_calm("HTTP")


ALL = (
    nothing_there,
    every_view,
    the_whole_suite_first,
    one_picture,
    the_worst_first,
    the_same_figures,
    significance,
    toggles,
    permalinks,
    downloads,
    screens,
     over_http)
