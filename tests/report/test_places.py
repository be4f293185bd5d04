"""`lietransformer places`: where everything is."""

from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.cli.places import places
from tests.report.synthetic import Results, write_json


def test_names_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Results(Path("results"), tier="workstation").write()
    Path("results", "tables").mkdir()
    Path("results", "mlflow.db").touch()
    assert places(Path("results")).splitlines() == [
        "Results of the tier workstation:",
        "  tables    results/tables",
        "  MLflow    make ui",
    ]


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        ("none", None),
        ("http://host:5000", "http://host:5000"),
        ("sqlite:///there.db", "mlflow ui --backend-store-uri sqlite:///there.db"),
        ("sqlite:///absent.db", None),
    ],
)
def test_how_to_see_mlflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, line: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(Path("sweep.json"), {"config": {"tracking": uri}})
    Path("runs").mkdir()
    Path("there.db").touch()
    last = places(Path()).splitlines()[-1]
    assert last == ("  runs      runs" if line is None else f"  MLflow    {line}")


def test_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["places", str(tmp_path)]) == 0
    assert "no results" in capsys.readouterr().out
