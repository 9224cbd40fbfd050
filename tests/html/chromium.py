"""Chromium without a window, spoken to over pipes: no port, and no package beside Python's own."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One process, ended with the `with` block."""

    def __init__(self, program):
        self._folder = tempfile.TemporaryDirectory(prefix="attn-opt-chromium-", ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place_pipes():  # the browser reads 3 and writes 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={self._folder.name}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._pending, self._events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except OSError:
            pass
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def _message(self):
        while b"\0" not in self._pending:
            data = os.read(self._read, 1 << 16)
            if not data:
                raise OSError("Chromium ended")
            self._pending += data
        text, self._pending = self._pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a command; what happens meanwhile is kept in events()."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._events.append(message)

    def events(self, session):
        """What happened since the last call, in the page of SESSION."""
        mine = [event for event in self._events if event.get("sessionId") == session]
        self._events = [event for event in self._events if event.get("sessionId") != session]
        return mine

    def page(self, path, width=1280, height=900, dark=False, scale=1):
        """The file PATH, loaded."""
        return Page(self, path, width, height, dark, scale)


class Page:
    """A tab."""

    KEYS = {"Tab": 9, "Enter": 13}

    def __init__(self, browser, path, width, height, dark, scale):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height, scale)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.problems = []
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def evaluate(self, script):
        """The value of SCRIPT, of which JSON must be capable."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {script}")
            time.sleep(0.02)

    def console(self):
        """Everything that the page wrote to the console, and every exception that nothing caught."""
        self.evaluate("0")
        for event in self._browser.events(self._session):
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.problems.append(event["params"])
        return self.problems

    def press(self, key):
        for kind in ("rawKeyDown", "char", "keyUp") if key == "Enter" else ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=self.KEYS[key],
                      **({"text": "\r"} if kind == "char" else {}))

    def screenshot(self, path, whole=False):
        """Writes a PNG of what the window shows, or of the WHOLE page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(data["data"]))
