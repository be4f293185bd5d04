import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from lietransformer.cli import report as command
from lietransformer.errors import UserError
from lietransformer.experiments.registry import TABLES
from tests.report.synthetic import Results, mae

COMMANDS = ("tables", "figures", "claims", "report")


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parsers(parser.add_subparsers())
    options = parser.parse_args(arguments)
    return int(options.run(options))


def test_files_are_where_the_workflow_expects_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path)
    results.add(["qm9"], "qm9", "LieConv-T3", target="mu", test=mae(0.06))
    results.write()
    assert run("tables", str(tmp_path)) == 0
    assert run("figures", str(tmp_path), "--only", "figure7", "figure5") == 0
    assert run("claims", str(tmp_path)) == 0
    names = [
        *(f"tables/{name}.{ending}" for name in TABLES for ending in ("md", "csv", "tex")),
        *(f"figures/figure{n}.{ending}" for n in (7, 5) for ending in ("png", "pdf")),
        "claims.md",
        "claims.json",
    ]
    assert capsys.readouterr().out.splitlines()[:-1] == [str(tmp_path / name) for name in names]
    assert all((tmp_path / name).stat().st_size for name in names)


def test_out(tmp_path: Path) -> None:
    run("tables", str(tmp_path), "--only", "table1", "--out", str(tmp_path / "elsewhere"))
    assert len(list((tmp_path / "elsewhere").iterdir())) == 3
    run("claims", str(tmp_path), "--out", str(tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / "claims.md").exists()


@pytest.mark.parametrize("name", ["tables", "figures"])
def test_unknown_names_are_answered_with_those_that_exist(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"--only must name some of (table1|figure2), "):
        run(name, str(tmp_path), "--only", "table9")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="a folder of results"):
        run(name, str(tmp_path / "none"))


def test_the_report_of_an_empty_folder_without_torch(tmp_path: Path) -> None:
    code = (
        "import argparse, sys; from lietransformer.cli import report;"
        "parser = argparse.ArgumentParser(); report.add_parsers(parser.add_subparsers());"
        f"options = parser.parse_args(['report', {str(tmp_path)!r}]); options.run(options);"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert "There are no runs" in (tmp_path / "report.html").read_text()
