"""Photographs of MLflow's web page for the README: `make screenshots`.

python -m tests.tracking.screenshots RESULTS OUT
"""

import sys
import tempfile
from pathlib import Path

from lietransformer.errors import UserError
from tests.browser import open_browser
from tests.tracking.ui import Ui, serving

# Of the springs: what runs are compared by, and the curve of a run and its final number.
AXES = ["group", "model", "size"]
CURVE = "validation/mse_geometric"
NUMBER = "best/test/mse_geometric"
# Where artifacts lie on this machine is nobody else's business.
_HIDE_PATHS = """
    for (const element of document.querySelectorAll("*"))
        if (!element.children.length && element.textContent.includes("file:///"))
            element.textContent = "";
"""


def photograph(ui: Ui, out: Path) -> None:
    """Curves of runs, their parallel coordinates, a figure of the summary."""
    ui.open_experiment("springs")
    ui.search('tags.`group` = "T(2)" and tags.seed = "0"')
    ui.browser.wait(ui.runs)
    ui.draw_curves(CURVE)
    ui.browser.wait(lambda: len(ui.curves()) == 1)
    ui.browser.photograph(out / "mlflow-curves.png")
    ui.open_experiment("springs")
    found = ui.runs()
    ui.search("")
    ui.browser.wait(lambda: ui.runs() > found)
    ui.compare()
    ui.browser.wait(ui.parallel_coordinates)
    ui.choose(AXES, NUMBER)
    ui.browser.wait(lambda: [*ui.parallel_coordinates()] == [*AXES, NUMBER])
    ui.browser.photograph(out / "mlflow-parallel-coordinates.png")
    ui.open_experiment("summary")
    ui.open_run("tier ")
    ui.open_artifact("figures", "figure4.png")
    ui.browser.wait(ui.pictures)
    ui.browser.run(_HIDE_PATHS)
    ui.browser.photograph(out / "mlflow-summary.png")


def main(results: Path, out: Path) -> None:
    """Start MLflow on the store of a results folder, and photograph it."""
    store = (results / "mlflow.db").absolute()
    if not store.exists():
        raise UserError(
            f"there is no MLflow store {store}. Run the experiments first with `make reproduce`."
        )
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), store) as server,
        open_browser(Path(folder) / "profile") as browser,
    ):
        photograph(Ui(browser, server.uri), out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
