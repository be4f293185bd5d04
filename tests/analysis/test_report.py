import re
from pathlib import Path

import pytest

from lietransformer.analysis.figures import FIGURES
from lietransformer.analysis.report import write_report
from lietransformer.analysis.runs import read_sweep
from lietransformer.analysis.tables import TABLES
from tests.analysis.synthetic import COMMIT, Results, accuracies
from tests.browser import Browser, one_at_a_time

# Of links within the page, those that lead nowhere.
_BROKEN_LINKS = """
    return [...document.querySelectorAll("a")]
        .map(link => link.getAttribute("href"))
        .filter(target => !document.querySelector(target))
"""
_PICTURES = "return [...document.images].filter(picture => picture.naturalWidth > 0).length"
_TOO_WIDE = "const root = document.documentElement; return root.scrollWidth - root.clientWidth"


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


@one_at_a_time
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_it(tmp_path: Path, report: str, browser: Browser, width: int) -> None:
    """Also on the narrow screen of a telephone, without scrolling sideways."""
    path = tmp_path / "report.html"
    path.write_text(report)
    browser.resize(width, 800)
    browser.open(path.as_uri())
    browser.expect(lambda: browser.run(_PICTURES), len(FIGURES))
    assert browser.run(_BROKEN_LINKS) == []
    assert browser.run(_TOO_WIDE) == 0
    browser.click("nav a", "Figures")
    assert browser.driver.current_url.endswith("#figures")
    assert browser.errors() == []
    assert browser.hosts() == set()
