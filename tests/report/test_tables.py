import csv
import re
import subprocess
from pathlib import Path

import pytest

from lietransformer.experiments.registry import TABLES
from lietransformer.report.runs import read_sweep
from lietransformer.report.tables import FORMATS, html, write_tables
from tests.report.synthetic import COMMIT, Results, accuracies, for_both_weights, mae
from tests.requirements import needs_latex

CONSTELLATIONS = (["constellations"], "constellations")
QM9 = (["qm9"], "qm9")


def table1_results(path: Path) -> Path:
    """Table 1 with all that can happen to a cell."""
    results = Results(path, tier="workstation")
    for seed, accuracy in enumerate((0.70, 0.72, 0.74)):
        test = accuracies(accuracy, accuracy, accuracy - 0.2)
        results.add(*CONSTELLATIONS, "LieTransformer-T2", augmentation="none", seed=seed, test=test)
    model = "SetTransformer"
    test = accuracies(0.5, 0.4, 0.3)
    results.add(*CONSTELLATIONS, model, augmentation="none", seed=0, test=test)
    results.add(*CONSTELLATIONS, model, augmentation="none", seed=1, status="diverged", test=test)
    results.add(*CONSTELLATIONS, model, augmentation="none", seed=2, status="running")
    results.add(*CONSTELLATIONS, "LieTransformer-SE2", augmentation="none", status="missing")
    return results.write()


def table2_results(path: Path) -> Path:
    """Two runs of Table 2 and one that is still to come."""
    results = Results(path)
    results.add(*QM9, "LieTransformer-T3", target="alpha", augmentation="none", test=mae(0.0456))
    results.add(*QM9, "LieConv-T3", target="alpha", augmentation="SO3", test=mae(0.0462))
    results.add(*QM9, "LieConv-T3", target="gap", augmentation="SO3", status="running")
    return results.write()


def rendered(results: Path, name: str, ending: str) -> str:
    return FORMATS[ending](TABLES[name].make(read_sweep(results)))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def test_markdown_of_table1(tmp_path: Path) -> None:
    text = rendered(table1_results(tmp_path), "table1", "md")
    table, _ = text.split("### Table 1, stricter test sets")
    lines = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()}
    ours = lines["LieTransformer-T2"]
    assert "**0.72** ± 0.02 (3)<br>paper 0.75 ± 0.03<br>Δ −0.03" in ours
    assert "not run<br>paper 0.70 ± 0.03" in ours  # trained with augmentation: no run
    set_transformer = lines["SetTransformer"]
    assert "0.50 (1 of 3)<br>1 diverged<br>paper 0.58 ± 0.07<br>Δ −0.08" in set_transformer
    assert "not run<br>paper 0.71" in lines["LieTransformer-SE2"]
    assert "REDUCED" in text
    assert "4 finished, 1 diverged and left out, 1 begun and not ended, 1 not run" in text
    assert COMMIT[:10] in text


def test_the_papers_own_tier_is_not_called_reduced(tmp_path: Path) -> None:
    assert "REDUCED" not in rendered(table2_results(tmp_path), "table2", "md")


def test_markdown_of_table2_quotes_what_we_do_not_run(tmp_path: Path) -> None:
    text = rendered(table2_results(tmp_path), "table2", "md")
    (wave_scatt,) = (line for line in text.splitlines() if "WaveScatt" in line)
    assert "*quoted* | 0.160 | 118 |" in wave_scatt
    assert wave_scatt.endswith("| – |")
    (conv,) = (line for line in text.splitlines() if line.startswith("| LieConv-T3 + SO3 Aug"))
    # As printed, 0.0456 and 0.0462 are both the best, of their section and of all.
    assert "<u>**0.046**</u> (1)<br>paper 0.084<br>Δ −0.038 | 0 of 1 finished" in conv
    assert "<u>**26**</u>" in text  # DimeNet++, quoted, is still the best on HOMO


def test_a_specialist_that_was_run_is_not_quoted(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(*QM9, "DimeNet++", target="mu", augmentation="none", test=mae(0.05))
    text = rendered(results.write(), "table2", "csv")
    (row,) = (row for row in rows(text) if row["model"] == "DimeNet++" and row["task"] == "mu")
    assert (row["mean"], row["is_quoted"]) == ("0.05", "False")


def test_csv_has_every_cell_with_all_digits(tmp_path: Path) -> None:
    text = rendered(table1_results(tmp_path), "table1", "csv")
    cells = rows(text)
    assert len(cells) == 18 + 15  # and those of the stricter test sets
    (cell,) = (
        row
        for row in cells
        if (row["model"], row["train_augmentation"], row["test_transform"])
        == ("LieTransformer-T2", "none", "SE2")
    )
    assert float(cell["mean"]) == pytest.approx(0.52)
    assert float(cell["standard_deviation"]) == pytest.approx(0.02)
    assert (cell["seeds"], cell["source"], cell["paper"]) == ("3", "local", "0.63")
    assert "# Tier: workstation" in text


@pytest.mark.parametrize("name", TABLES)
def test_latex_has_as_many_cells_in_each_line(tmp_path: Path, name: str) -> None:
    text = rendered(table1_results(tmp_path), name, "tex")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    counts = {len(re.findall(r"(?<!\\)&", line)) for line in body}
    table = TABLES[name].make(read_sweep(tmp_path))
    assert counts == {len(part.columns) for part in (table, table.below) if part}
    assert text.count("{") == text.count("}")
    assert r"\toprule" in text
    assert r"\bottomrule" in text


def test_latex_has_ours_and_theirs(tmp_path: Path) -> None:
    text = rendered(table1_results(tmp_path), "table1", "tex")
    assert r"LieTransformer-T2 & \textbf{0.72} $\pm$ 0.02 &" in text
    assert r"{\footnotesize\itshape 1 of 3, 1 diverged}" in text
    assert r"{\footnotesize\itshape 0.75 $\pm$ 0.03}" in text
    assert r"{\footnotesize\itshape $-$0.03}" in text


def strict_results(path: Path) -> Path:
    """Two runs with all five test sets."""
    results = Results(path)
    for seed, accuracy in enumerate((0.70, 0.72)):
        test = accuracies(accuracy, accuracy, accuracy - 0.1)
        for sets in test.values():
            sets["test_T2_all"] = {"accuracy": accuracy}
            sets["test_SE2_all"] = {"accuracy": accuracy - 0.2}
        results.add(*CONSTELLATIONS, "LieTransformer-T2", augmentation="none", seed=seed, test=test)
    return results.write()


def test_csv_has_the_stricter_test_sets(tmp_path: Path) -> None:
    cells = {
        (row["model"], row["train_augmentation"], row["test_transform"]): row
        for row in rows(rendered(strict_results(tmp_path), "table1", "csv"))
    }
    mixture, every = (
        cells["LieTransformer-T2", "none", transform] for transform in ("SE2", "SE2_all")
    )
    assert float(mixture["mean"]) == pytest.approx(0.61)
    assert float(every["mean"]) == pytest.approx(0.51)
    assert (mixture["paper"], every["paper"]) == ("0.63", "")
    assert every["seeds"] == "2"


@pytest.mark.parametrize(
    ("ending", "heading", "cells"),
    [
        ("md", "D_train<br>D_test^SE2 (all)", "**0.51** ± 0.01 (2) |"),
        ("tex", r"$D_{\mathrm{test}}^{SE2}$ (all)", r"\textbf{0.51} $\pm$ 0.01 &"),
        ("html", "<th>D<sub>test</sub><sup>SE2</sup> (all)</th>", "<b>0.51</b> ± 0.01"),
    ],
)
def test_the_stricter_test_sets_stand_below_table1(
    tmp_path: Path, ending: str, heading: str, cells: str
) -> None:
    render = {**FORMATS, "html": html.render}[ending]
    text = render(TABLES["table1"].make(read_sweep(strict_results(tmp_path))))
    below = text[text.index("(all)") - 200 :]
    assert heading in below
    assert cells in below
    assert "every test example is transformed" in text
    # The paper has no numbers there: neither beside ours nor as empty lines.
    numbers = text[text.index(heading) :]
    assert "paper 0" not in numbers
    assert r"\itshape paper" not in numbers


def test_table1_names_the_rotation_of_the_data(tmp_path: Path) -> None:
    Results(tmp_path).write()
    assert "rotated by up to 0.33 half turns either way. Without" in rendered(
        tmp_path, "table1", "md"
    )
    config = {"constellations": {"data": {"rotation": 0.0}}}
    Results(tmp_path, config=config).write()
    assert "instances are not rotated" in rendered(tmp_path, "table1", "md")


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_latex_compiles(tmp_path: Path, name: str) -> None:
    table = rendered(table1_results(tmp_path), name, "tex")
    packages = r"\usepackage{booktabs,graphicx}\usepackage[textwidth=6.75in]{geometry}"
    page = rf"\documentclass{{article}}{packages}\begin{{document}}{table}\end{{document}}"
    (tmp_path / "page.tex").write_text(page)
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout, "wider than the paper's page"


def test_all_tables_are_written_from_nothing(tmp_path: Path) -> None:
    written = list(write_tables(read_sweep(tmp_path), TABLES, tmp_path / "tables"))
    assert len(written) == len(TABLES) * len(FORMATS)
    assert "not run" in (tmp_path / "tables" / "table1.md").read_text()
    assert "Runs: none." in (tmp_path / "tables" / "table2.md").read_text()


def test_draws_of_training_systems(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for model, errors in (("LieTransformer-T2 small", (1e-3, 4e-3)), ("LieConv-T2 small", (8e-3,))):
        for draw, error in enumerate(errors):
            test = for_both_weights(test={"mse_geometric": error})
            results.add(["draws"], "springs", model, test=test, n_train=10, draw=draw)
    # Those of Figure 4 have the same model and size, and do not belong here.
    test = for_both_weights(test={"mse_geometric": 1.0})
    results.add(["data_efficiency"], "springs", "LieConv-T2 small", seed=1, test=test, n_train=10)
    text = rendered(results.write(), "draws", "md")
    assert "| LieTransformer-T2 small | 1.00 (1) | 4.00 (1) |" in text
    assert "| LieConv-T2 small | 8.00 (1) |" in text
    assert "Largest over smallest error: LieTransformer-T2 small 4.0." in text
