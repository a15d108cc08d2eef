"""A headless Chromium, driven by ChromeDriver over the WebDriver protocol."""
import base64
import json
import time
import urllib.error
import urllib.request

from servers import Failed, Server, free_port, program

PATIENCE_SECONDS = 120
# The key by which WebDriver names an element in its JSON.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    # There is no https here, and Chromium must not look passwords up.
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,PasswordLeakDetection,OptimizationHints",
)


class Driver:
    """ChromeDriver; it starts a browser for each session."""

    def __init__(self, scratch, running):
        port = free_port()
        self.scratch = scratch
        self.server = Server("chromedriver", [program("chromedriver"), f"--port={port}"], scratch, port=port,
                             # Files of Chromium outside its profile.
                             environment={"HOME": str(scratch), "XDG_CACHE_HOME": str(scratch / "chromium-cache")})
        running.append(self.server)

    def browser(self, host, address):
        """A new browser that resolves `host` to this address, and no other host."""
        return Browser(self.server.url, host, address, self.scratch / f"profile-{time.monotonic_ns()}")


class Browser:
    def __init__(self, driver, host, address, profile):
        self.base = driver
        flags = [*FLAGS, f"--user-data-dir={profile}", f"--host-resolver-rules=MAP {host}:80 {address}, MAP * ~NOTFOUND"]
        self.base = f"{driver}/session/" + self._do("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"binary": program("chromium"), "args": flags},
        }}})["sessionId"]
        # Chromium's first page tries to load things.
        self.show("about:blank")
        self.complaints()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._do("DELETE", "")

    def show(self, url):
        """Opens an address, and waits until everything is loaded."""
        self._do("POST", "/url", {"url": url})

    def wait_until(self, script, words):
        """Waits until an expression is true in the page."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.run(f"return Boolean({script})"):
            if time.monotonic() > deadline:
                raise Failed(f"in vain it was waited for that {words}; {self.run('return location.href')}")
            time.sleep(0.1)

    def run(self, script):
        return self._do("POST", "/execute/sync", {"script": script, "args": []})

    def type(self, selector, text):
        self._do("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def click(self, selector):
        self._do("POST", f"/element/{self._find(selector)}/click", {})

    def size(self, width, height, is_phone):
        self._do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1, "mobile": is_phone,
        }})

    def scheme(self, name):
        """Sets the preferred colour scheme of the system: light or dark."""
        self._do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": name}],
        }})

    def motion(self, name):
        """Sets the preferred motion of the system: reduce or no-preference."""
        self._do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-reduced-motion", "value": name}],
        }})

    def scripts(self, run):
        """Whether pages may run scripts."""
        self._do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": not run}})

    def source(self):
        return self._do("GET", "/source")

    def downloads_to(self, folder):
        """Sets the folder of downloads."""
        self._do("POST", "/goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": {
            "behavior": "allow", "downloadPath": str(folder),
        }})

    def screenshot(self, file):
        file.write_bytes(base64.b64decode(self._do("GET", "/screenshot")))

    def complaints(self):
        """Errors in the console, and failed requests, since the last call."""
        said = [entry["message"] for entry in self._log("browser") if entry["level"] == "SEVERE"]
        asked = {}
        for entry in self._log("performance"):
            event = json.loads(entry["message"])["message"]
            told = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                asked[told["requestId"]] = told["request"]["url"]
            elif event["method"] == "Network.loadingFailed":
                said.append(f"{asked.get(told['requestId'], told.get('type'))}: {told['errorText']}")
            elif event["method"] == "Network.responseReceived" and told["response"]["status"] >= 400:
                said.append(f"{told['response']['url']}: {told['response']['status']}")
        return said

    def _log(self, kind):
        return self._do("POST", "/se/log", {"type": kind})

    def _find(self, selector):
        return self._do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def _do(self, method, path, given=None):
        body = None if given is None else json.dumps(given).encode()  # tidy: word, the library's
        request = urllib.request.Request(self.base + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            told = json.load(error)["value"]
            raise Failed(f"Chromium: {told['error']}: {told['message'].splitlines()[0]}") from None
