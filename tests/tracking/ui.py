"""MLflow's web page as `make ui` shows it, and what a user does there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import Browser
from tests.tracking.server import Server

ROOT = Path(__file__).parents[2]

# What MLflow's own code complains about: that nobody is logged in, where nobody has to, and that a
# frame was drawn late.
_ITS_OWN = ("/users/current", "ResizeObserver loop")


def make_ui(store: Path, port: int) -> list[str]:
    """The command, with the environment that the tests run in, which is not made again."""
    settings = (f"STORE={store}", f"PORT={port}", f"BIN={Path(sys.executable).parent}")
    return ["make", "-C", str(ROOT), "--old-file", ".venv/.installed", "ui", *settings]


class MakeUi(Server):
    """What `make ui` starts."""

    def __init__(self, folder: Path, store: Path) -> None:
        super().__init__(folder)
        self._store = store

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def _command(self) -> list[str]:
        return make_ui(self._store, int(self.uri.rpartition(":")[2]))

    def _environment(self) -> dict[str, str]:
        """A user's: what switches telemetry off has to be in the Makefile."""
        return {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}


@contextmanager
def serving(folder: Path, store: Path) -> Iterator[MakeUi]:
    """MLflow on a store, answering; its log is in the folder."""
    server = MakeUi(folder, store)
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.kill()


class Ui:
    """What a user does with the page, and what they see."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self._address = address
        browser.open(f"{address}/#/experiments")
        browser.click("[data-component-id='mlflow.assistant.chat_panel.close']")
        browser.click("label, button, span", "Model training")

    def experiments(self) -> set[str]:
        """Those in the list."""
        self.browser.find("a[href*='#/experiments/']")
        return set(
            self._texts("td a[href*='#/experiments/'], [role=cell] a[href*='/experiments/']")
        )

    def open_experiment(self, name: str) -> None:
        self.browser.open(f"{self._address}/#/experiments")
        self.browser.click("a[href*='#/experiments/']", name)
        self.browser.find("[data-testid='search-box']")

    def search(self, condition: str) -> None:
        """Let the list show the runs that meet a condition alone."""
        box = self.browser.find("[data-testid='search-box']")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(Keys.BACKSPACE, condition, Keys.ENTER)

    def runs(self) -> set[str]:
        """The names in the list."""
        return set(self._texts(".ag-row a[href*='/runs/']"))

    def draw_curves(self, metric: str) -> None:
        """Charts instead of the list, and among them those of a metric."""
        self.browser.click("label:has(input[value=CHART])")
        self.browser.find("input[placeholder='Search metric charts']").send_keys(metric)

    def curves(self) -> list[dict[str, int]]:
        """Of each chart the curves that it draws: how many points, by the run's name."""
        drawn = """
            return [...document.querySelectorAll(".js-plotly-plot")].map(plot => plot.data
                .filter((_, number) => plot.querySelectorAll(".scatterlayer .trace")[number])
                .map(curve => [curve.name, curve.x.length]))
        """
        return [dict(curves) for curves in self.browser.run(drawn)]

    def compare(self) -> None:
        """Open the page that compares all runs of the list."""
        self.browser.click(".ag-header-select-all, .ag-header .ag-checkbox")
        self.browser.click("button", "Compare")

    def choose(self, parameters: list[str], metric: str) -> None:
        """Draw parallel coordinates of these instead of those that the page begins with."""
        self.browser.click("button", "Clear All")
        boxes = self.browser.driver.find_elements(By.CSS_SELECTOR, "input[role=combobox]")
        for box, chosen in zip(boxes, (parameters, [metric]), strict=True):
            for name in chosen:
                box.send_keys(name)
                self.browser.click(f".rc-virtual-list [title='{name}']")
            box.send_keys(Keys.ESCAPE)

    def parallel_coordinates(self) -> dict[str, int]:
        """The axes that are drawn: how many runs each has a place for, by its name."""
        axes = """
            const plot = document.querySelector(".js-plotly-plot:has(canvas)")
            const drawn = plot?.data?.find(own => own.type === "parcoords")
            return (drawn?.dimensions ?? []).map(axis => [axis.label, axis.values.length])
        """
        return dict(self.browser.run(axes))

    def open_run(self, name: str) -> None:
        self.browser.click(".ag-row a[href*='/runs/']", name)
        self.browser.find("[data-testid='runs-header']", name)

    def open_artifact(self, folder: str, name: str) -> None:
        """Show a file of a run's folder of artifacts."""
        self.browser.click("button", "Artifacts")
        for node in (folder, name):
            self.browser.click("[data-testid='artifact-tree-node']", node)

    def pictures(self) -> list[int]:
        """How wide the pictures are that the page shows, in their own pixels."""
        widths = "return [...document.querySelectorAll('#root img')].map(own => own.naturalWidth)"
        return [width for width in self.browser.run(widths) if width > 0]

    def errors(self) -> list[str]:
        """What went wrong and is not MLflow's own."""
        said = self.browser.errors()
        return [error for error in said if not any(own in error for own in _ITS_OWN)]

    def _texts(self, css: str) -> list[str]:
        found: Any = self.browser.run(
            "return [...document.querySelectorAll(arguments[0])].map(own => own.innerText)", css
        )
        return [str(text) for text in found]


def run_make_ui(store: Path, port: int) -> subprocess.CompletedProcess[str]:
    """`make ui` where it ends by itself."""
    return subprocess.run(make_ui(store, port), capture_output=True, text=True, check=False)
