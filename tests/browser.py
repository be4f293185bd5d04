"""A headless Chromium that is driven as a user would, for the tests of pages."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import pytest
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.requirements import IS_ALL_REQUIRED

T = TypeVar("T")

WINDOW = (1280, 800)
# Long enough for a machine that does much else. Nothing waits for it unless it fails.
_SECONDS_TO_WAIT = 120
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # No page may need anything from elsewhere: other hosts are not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

_OF_THE_NETWORK = ("http", "https", "ws", "wss")

# Chromium takes much memory: one process of the suite runs all tests that use it.
one_at_a_time = pytest.mark.xdist_group("browser")


class Browser:
    """A window with one page. What it asks for is waited for."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self._requested: list[SplitResult] = []

    def open(self, address: str) -> None:
        self.driver.get(address)

    def resize(self, width: int, height: int) -> None:
        """Give the page itself this size, also below the least width of a window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body in JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], T | None]) -> T:
        """Until it returns something true; elements may come, move and go meanwhile."""
        passing = (
            StaleElementReferenceException,
            ElementNotInteractableException,
            ElementClickInterceptedException,
        )
        waiting = WebDriverWait(self.driver, _SECONDS_TO_WAIT, ignored_exceptions=passing)
        found = waiting.until(lambda _: condition())
        assert found is not None
        return found

    def expect(self, seen: Callable[[], T], expected: T) -> None:
        """Wait until that is what there is to see."""
        with suppress(TimeoutException):
            self.wait(lambda: seen() == expected)
        last = seen()
        assert last == expected, f"expected {expected}, saw {last}"

    def find(self, css: str, text: str = "") -> WebElement:
        """The first that can be seen and contains the text."""
        return self.wait(lambda: self._first(css, text))

    def click(self, css: str, text: str = "") -> None:
        """Click on the first that can be seen and contains the text."""

        def click() -> bool:
            element = self._first(css, text)
            if element is None:
                return False
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        self.wait(click)

    def _first(self, css: str, text: str) -> WebElement | None:
        found = self.driver.find_elements(By.CSS_SELECTOR, css)
        return next((own for own in found if text in own.text and own.is_displayed()), None)

    def errors(self) -> list[str]:
        """What the console has complained about since it was last asked."""
        entries = self._log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def hosts(self) -> set[str]:
        """Where the pages have sent requests to so far."""
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requested.append(urlsplit(message["params"]["request"]["url"]))
        return {str(own.hostname) for own in self._requested if own.scheme in _OF_THE_NETWORK}

    def _log(self, kind: str) -> list[dict[str, Any]]:
        return list(self.driver.get_log(kind))  # type: ignore[no-untyped-call]

    def photograph(self, path: Path) -> None:
        """The window as it is now."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.driver.get_screenshot_as_png())


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """A new Chromium that knows nothing of others; `profile` is an empty folder for it."""
    options = ChromeOptions()
    options.binary_location = _program("chromium")
    for flag in (*_FLAGS, f"--window-size={WINDOW[0]},{WINDOW[1]}", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, ChromeService(_program("chromedriver")))
    try:
        browser = Browser(driver)
        browser.resize(*WINDOW)
        yield browser
    finally:
        driver.quit()


def _program(name: str) -> str:
    """Where it is; without it there is nothing to test, unless nothing may be left out."""
    path = shutil.which(name)
    if path is None and not IS_ALL_REQUIRED:
        pytest.skip(f"needs {name}")
    assert path is not None, f"needs {name}"
    return path
