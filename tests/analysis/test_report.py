import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lietransformer.analysis.figures import FIGURES
from lietransformer.analysis.report import write_report
from lietransformer.analysis.runs import read_sweep
from lietransformer.analysis.tables import TABLES
from tests.analysis.synthetic import COMMIT, Results, accuracies

# Says in the title what became of a page of the width of a telephone.
_PROBE = """
<iframe id="frame" style="width: 360px; height: 600px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument;
  const broken = [...page.querySelectorAll("a")]
    .filter(link => !page.querySelector(link.getAttribute("href"))).length;
  const seen = [...page.images].filter(image => image.naturalWidth > 0).length;
  const root = page.documentElement;
  document.title = JSON.stringify({{ broken, seen, spare: root.clientWidth - root.scrollWidth }});
}});
</script>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    results = Results(tmp_path_factory.mktemp("results"), tier="laptop")
    part, task = ["constellations"], "constellations"
    for seed, status in enumerate(("finished", "finished", "diverged", "missing")):
        results.add(
            part,
            task,
            "LieTransformer-T2",
            augmentation="none",
            seed=seed,
            status=status,
            test=accuracies(0.7, 0.7, 0.6),
        )
    path = results.write() / "report.html"
    write_report(read_sweep(results.path), path)
    return path.read_text()


def test_it_has_everything(report: str) -> None:
    assert report.count("<img ") == len(FIGURES)
    for name in (*TABLES, *FIGURES):
        assert f'id="{name}"' in report
        assert f"snakemake --cores all {name}" in report
    for number in range(1, 19):
        assert f'id="claim-{number}"' in report
    assert "REDUCED" in report
    assert COMMIT[:10] in report
    assert "4 runs: 2 finished, 1 diverged and left out, 1 missing." in report
    assert "3.0 hours of computing" in report


def test_it_needs_nothing_from_elsewhere(report: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]{0,8})', report)
    assert all(address.startswith(("#", "data:")) for address in addresses)


@pytest.mark.skipif(
    not shutil.which("chromium") and "LIETRANSFORMER_REQUIRE_ALL" not in os.environ,
    reason="needs chromium",
)
def test_a_browser_shows_it_on_a_narrow_screen(tmp_path: Path, report: str) -> None:
    probe = tmp_path / "probe.html"
    probe.write_text(_PROBE.format(page=html.escape(report)))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "CONSOLE" not in done.stderr
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    assert json.loads(html.unescape(title[1])) == {"broken": 0, "seen": len(FIGURES), "spare": 0}
