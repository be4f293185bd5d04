import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lietransformer.errors import UserError
from lietransformer.experiments.registry import FIGURES, TABLES
from lietransformer.layout import Archive
from lietransformer.report.report import write_report
from lietransformer.report.runs import read_sweep
from lietransformer.report.verification import Verification, read_verification
from tests.browser import Browser, one_at_a_time
from tests.report.synthetic import COMMIT, MACHINE, Results, accuracies, write_json

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
    results = Results(tmp_path_factory.mktemp("results"), tier="workstation")
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
    assert report.count("<img ") == len(FIGURES) + 1  # Figure 4 also at the top
    for name in (*TABLES, *FIGURES):
        assert f'id="{name}"' in report
        assert f"snakemake --cores all {name}" in report
    for number in range(1, 26):
        assert f'id="claim-{number}"' in report
    assert "REDUCED" in report
    assert COMMIT[:10] in report
    assert "4 runs: 2 finished, 1 diverged and left out, 1 not run." in report
    assert "6.0 core-hours (CPU time)" in report


def test_it_needs_nothing_from_elsewhere(report: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]{0,8})', report)
    assert all(address.startswith(("#", "data:")) for address in addresses)


def verified(*verdicts: str, dataset: str = "identical") -> dict[str, Any]:
    """A verification.json with a run of each verdict."""
    runs = [
        {
            "run": f"springs/LieConv-T2/n10/seed-{seed}",
            "folder": f"runs/{seed}",
            "published_commit": COMMIT,
            "published_machine": "Xeon",
            "trained_epochs": 100.0,
            "epochs": 6928,
            "is_complete": False,
            "metric": "validation/mse_geometric",
            "published": 0.5,
            "here": None if verdict == "not compared" else 0.25,
            "spread": None if verdict == "identical" else 0.1,
            "difference_in_spreads": None if verdict == "identical" else 2.5,
            "verdict": verdict,
            "seconds": 90.0,
        }
        for seed, verdict in enumerate(verdicts)
    ]
    return {
        "schema_version": 1,
        "machine": MACHINE,
        "git_commit": COMMIT,
        "runs": runs,
        "datasets": [
            {"name": "springs-1a2b3c4d", "expected": "ab" * 32, "found": None, "verdict": dataset}
        ],
    }


def read_back(path: Path, content: Any) -> Verification:
    write_json(path / "verification.json", content)
    found = read_verification(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("verdicts", "statement"),
    [
        (("identical",), "1 of 1 re-trained run agrees"),
        (
            ("identical", "agrees", "identical"),
            "3 of 3 re-trained runs agree with the published ones, 2 of them bit by bit.",
        ),
        (
            ("identical", "identical"),
            "2 of 2 re-trained runs agree with the published ones, bit by bit.",
        ),
        (("agrees", "agrees"), "2 of 2 re-trained runs agree with the published ones."),
        (("not compared",), "No run was trained far enough"),
        (
            ("identical", "differs", "not compared"),
            "WARNING: 1 of 2 re-trained runs differs from the published ones: "
            "springs/LieConv-T2/n10/seed-1.",
        ),
    ],
)
def test_what_was_verified_in_a_sentence(
    tmp_path: Path, verdicts: tuple[str, ...], statement: str
) -> None:
    found = read_back(tmp_path, verified(*verdicts))
    assert found.statement.startswith(statement)
    assert found.is_bad == ("differs" in verdicts)


def test_a_dataset_that_differs_is_a_warning(tmp_path: Path) -> None:
    found = read_back(tmp_path, verified("identical", dataset="differs"))
    assert found.is_bad
    assert "WARNING: datasets differ from the published ones: springs-1a2b3c4d." in found.statement
    found = read_back(tmp_path, verified("identical", dataset="not generated"))
    assert "dataset" not in found.statement


def test_a_verification_of_another_archive_says_so(tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "MANIFEST.json").write_text("{}")
    archive = Archive(tmp_path / "published")
    for known, is_other in ((None, False), (archive.state, False), ("0" * 64, True)):
        write_json(
            tmp_path / "verification.json", {**verified("identical"), "manifest_sha256": known}
        )
        found = read_verification(tmp_path, archive)
        assert found is not None
        assert found.is_of_another_archive == is_other
        assert ("another state of the archive" in found.statement) == is_other


def test_a_damaged_dataset_is_a_warning(tmp_path: Path) -> None:
    assert read_back(tmp_path, verified("identical", dataset="damaged: truncated")).is_bad


def test_a_huge_difference_is_capped(tmp_path: Path) -> None:
    content = verified("differs")
    content["runs"][0]["difference_in_spreads"] = -235090.34
    assert "> 100" in read_back(tmp_path, content).run_rows()[0]


def test_what_needs_training_says_so_where_only_published_runs_count(tmp_path: Path) -> None:
    path = Results(tmp_path).write() / "report.html"
    for published, option in (("only", " --config published=use"), ("use", "")):
        write_report(replace(read_sweep(tmp_path), published=published), path)
        assert f"snakemake --cores all figure4{option}</code>" in path.read_text()


def test_the_report_shows_what_differs_first(tmp_path: Path) -> None:
    write_json(tmp_path / "verification.json", verified("identical", "differs"))
    sweep = read_sweep(Results(tmp_path).write())
    write_report(sweep, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert '<p class="banner bad">WARNING' in text
    section = text[text.index('<section id="verification">') :]
    assert section.index("seed-1") < section.index("seed-0")
    assert '<tr class="bad"><th>springs/LieConv-T2/n10/seed-1</th><td>differs</td>' in section
    assert "<td>2.50</td>" in section


@pytest.mark.parametrize(
    "content", [[], {"schema_version": 2}, {**verified("agrees"), "runs": [{"verdict": "agrees"}]}]
)
def test_a_verification_that_cannot_be_read_is_an_error(tmp_path: Path, content: Any) -> None:
    with pytest.raises(UserError, match=r"Write it again with `lietransformer verify`"):
        read_back(tmp_path, content)


def test_verdicts_are_one_bar(report: str) -> None:
    (label,) = re.findall(r'class="bar" role="img" aria-label="(.*?)"', report)
    assert label.startswith("Of 25 claims: 0 reproduced, ")
    (bar,) = re.findall(r'<div class="bar".*?</div>', report)
    assert sum(map(int, re.findall(r"flex-grow: (\d+)", bar))) == 25


@one_at_a_time
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_it(tmp_path: Path, report: str, browser: Browser, width: int) -> None:
    """Also on the narrow screen of a telephone, without scrolling sideways."""
    path = tmp_path / "report.html"
    path.write_text(report)
    browser.resize(width, 800)
    browser.open(path.as_uri())
    browser.expect(lambda: browser.run(_PICTURES), len(FIGURES) + 1)
    assert browser.run(_BROKEN_LINKS) == []
    assert browser.run(_TOO_WIDE) == 0
    browser.click("nav a", "Figures")
    assert browser.driver.current_url.endswith("#figures")
    assert browser.errors() == []
    assert browser.hosts() == set()
