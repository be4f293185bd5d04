"""Verification: published runs trained again, with real training."""

import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lietransformer import cli
from lietransformer.archive import verify
from lietransformer.archive.comparison import _judged, _spread, compare, pooled_spread
from lietransformer.archive.verify import check_datasets, choose, text
from lietransformer.errors import UserError
from lietransformer.layout import MANIFEST
from lietransformer.machine import describe_machine
from tests.archive.conftest import FULLY_CONNECTED, Project, edit, renew

RUN = f"{FULLY_CONNECTED}/seed-0"


def outcome(project: Project) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((project.results / "verification.json").read_text())
    return content


def test_a_run_comes_back_to_the_bit(
    published: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", RUN]) == 0
    (check,) = outcome(published)["runs"]
    assert (check["verdict"], check["is_complete"], check["run"]) == ("identical", True, RUN)
    assert check["here"] == check["published"]
    datasets = {data["name"]: data["verdict"] for data in outcome(published)["datasets"]}
    assert set(datasets.values()) == {"identical"}
    assert "Trained again: 1 identical." in capsys.readouterr().out


@pytest.mark.slow
def test_another_number_fails_and_is_shown(
    published: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = choose(published.archive, [RUN], seed=0)[0]
    metrics = published.archive.path / folder / "metrics.jsonl"
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    metrics.write_text("".join(json.dumps(record) + "\n" for record in records[:-1]))
    file = published.archive.path / folder / "result.json"
    result = json.loads(file.read_text())
    result["test"]["best"]["test"]["mse_geometric"] *= 1000
    file.write_text(json.dumps(result))
    renew(published.archive)
    assert cli.main(["verify", RUN]) == 1
    (check,) = outcome(published)["runs"]
    assert check["verdict"] == "differs"
    assert check["difference_in_spreads"] < -3
    assert "differs" in capsys.readouterr().out
    assert cli.main(["verify", RUN, "--report-only"]) == 0
    assert cli.main(["verify", "--show", "results/verification.json"]) == 1


def test_another_test_error_is_found_although_the_curves_are_the_same(published: Project) -> None:
    folder = choose(published.archive, [RUN], seed=0)[0]
    file = published.archive.path / folder / "result.json"
    result = json.loads(file.read_text())
    cases = (
        (1.001, "a", "agrees", "not equal to the bit, but within"),
        (1.001, None, "agrees", "not equal to the bit, but within"),
        (1.02, None, "differs", "processor and versions are the same"),
        (1e9, "a", "differs", ""),
    )
    for factor, processor, verdict, reason in cases:
        _on(published, processor)
        changed = json.loads(json.dumps(result))
        changed["test"]["best"]["test"]["mse_geometric"] *= factor
        file.write_text(json.dumps(changed))
        check = compare(published.archive, folder, published.run("fully-connected"), 1.0)
        assert (check.verdict, check.is_complete) == (verdict, True)
        assert check.reason.startswith(reason)
        assert check.spread_of == "all springs runs"  # there is one other seed
        assert check.metric == "best/test/mse_geometric"


def test_on_the_same_machine_only_rounding_excuses_a_difference() -> None:
    near = {"is_close": False, "is_near": True}
    assert _judged(1.0, **near, is_same_machine=False) == ("agrees", "")
    assert _judged(4.0, **near, is_same_machine=False) == ("differs", "")
    assert _judged(None, **near, is_same_machine=False)[0] == "agrees"
    assert _judged(1.0, **near, is_same_machine=True)[0] == "differs"
    assert _judged(1.0, is_close=True, is_near=True, is_same_machine=True)[0] == "agrees"


def _on(project: Project, processor: str | None) -> None:
    """As if all runs had been published from this processor; None: that of this machine."""
    machine = {**describe_machine(), **({"processor": processor} if processor else {})}
    runs = {name: {**run, "machine": machine} for name, run in project.archive.runs.items()}
    edit(project.archive.path / MANIFEST, runs=runs)


def test_the_spread_is_of_the_nearest_runs_with_several_seeds() -> None:
    def run(model: str, n_train: int) -> dict[str, Any]:
        return {"task": "springs", "model": model, "n_train": n_train}

    pool = [(run("b", 10), 1.0), (run("b", 10), 9.0)]
    others = [*pool, (run("a", 25), 1.0), (run("a", 25), 3.0)]
    own = [(run("a", 10), 1.0), (run("a", 10), 2.0)]
    for known, name in (
        ([*others, *own], "its other seeds"),
        ([*others, *own[:1]], "all a runs"),
        (pool, "all springs runs"),
        (own[:1], ""),
    ):
        spread, of = _spread("best/test/mse", run("a", 10), known)
        assert (of, spread is None) == (name, not name)


@pytest.mark.parametrize(("factor", "verdict"), [(1.01, "agrees"), (10.0, "differs")])
def test_without_a_spread_over_seeds_a_tolerance_decides(
    published: Project, factor: float, verdict: str
) -> None:
    _on(published, "another")
    (folder,) = choose(published.archive, ["constellations"], seed=0)
    file = published.archive.path / folder / "result.json"
    result = json.loads(file.read_text())
    result["test"]["best"]["test"]["accuracy"] *= factor
    file.write_text(json.dumps(result))
    check = compare(published.archive, folder, published.run("settransformer"), 1.0)
    assert (check.verdict, check.difference_in_spreads) == (verdict, None)


def test_a_whole_run_with_other_steps_differs(published: Project) -> None:
    folder = choose(published.archive, [RUN], seed=0)[0]
    metrics = published.archive.path / folder / "metrics.jsonl"
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = (json.dumps({**record, "step": record["step"] + 1000}) for record in records)
    metrics.write_text("".join(f"{line}\n" for line in lines))
    check = compare(published.archive, folder, published.run("fully-connected"), 1.0)
    assert check.verdict == "differs"
    assert "other steps" in check.reason


def test_the_beginning_of_a_run_is_compared_where_time_is_short(published: Project) -> None:
    """A run of a hundred times the epochs, of which a moment is trained."""
    folder = choose(published.archive, [RUN], seed=0)[0]
    here = published.results / "verification" / folder
    shutil.copytree(published.run("fully-connected"), here)
    (here / "result.json").unlink()
    metrics = here / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:4]) + '{"step": 1')
    check = compare(published.archive, folder, here, 1.0)
    assert (check.verdict, check.is_complete) == ("identical", False)
    assert 0 < check.trained_epochs < check.epochs


FAKE_TRAINING = """
import json, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
seconds = {seconds}
start = time.time()
while time.time() < start + seconds:
    epoch = 40 * (time.time() - start) / seconds
    record = dict(step=int(epoch), epoch=epoch, time=0)
    (out / "part").write_text(json.dumps(record) + chr(10))
    (out / "part").replace(out / "metrics.jsonl")
    time.sleep(0.05)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "is_stopped"), [(300, True), (6, False)])
def test_a_run_that_cannot_end_in_time_gets_a_share_of_the_budget(
    published: Project, monkeypatch: pytest.MonkeyPatch, seconds: float, is_stopped: bool
) -> None:
    script = published.root / "training.py"
    script.write_text(FAKE_TRAINING.replace("{seconds}", str(seconds)))
    monkeypatch.setattr(verify, "_LIETRANSFORMER", (sys.executable, str(script)))
    trainer = verify.Trainer(published.archive, published.results, budget=12.0, cores=1)
    (check,) = trainer.train(choose(published.archive, [RUN], seed=0))
    assert (check.trained_epochs < 20) == is_stopped
    assert check.seconds < 60


def test_killed_it_takes_its_runs_with_it(published: Project) -> None:
    """Also by SIGKILL: a run that trained on would be in the way of the next verification."""
    marker = published.root / "stopped"
    script = published.root / "training.py"
    script.write_text(
        "import pathlib, signal, sys, time\n"
        f"stopped = pathlib.Path({str(marker)!r})\n"
        "signal.signal(signal.SIGTERM, lambda *_: (stopped.touch(), sys.exit(75)))\n"
        f"pathlib.Path({str(published.root / 'started')!r}).touch()\n"
        "time.sleep(120)\n"
    )
    program = (
        "import sys\n"
        "from lietransformer import cli\n"
        "from lietransformer.archive import verify\n"
        f"verify._LIETRANSFORMER = (sys.executable, {str(script)!r})\n"
        f"cli.main(['verify', {RUN!r}])\n"
    )
    verification = subprocess.Popen([sys.executable, "-c", program], cwd=published.root)
    try:
        wait_until((published.root / "started").exists)
    finally:
        verification.kill()
        verification.wait()
    wait_until(marker.exists)


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_that_fails_is_not_hidden(published: Project) -> None:
    folder = choose(published.archive, [RUN], seed=0)[0]
    file = published.archive.path / folder / "config.json"
    stored = json.loads(file.read_text())
    stored["config"]["model"] = "nothing"
    file.write_text(json.dumps(stored))
    renew(published.archive)
    assert cli.main(["verify", RUN]) == 1
    (check,) = outcome(published)["runs"]
    assert check["verdict"] == "differs"
    assert "training failed" in check["reason"]


def test_other_data_fails_and_its_runs_are_not_trained(published: Project) -> None:
    archive = published.archive
    manifest = archive.manifest
    for dataset in manifest["datasets"].values():
        dataset["content_hash"] = "0" * 64
    (archive.path / MANIFEST).write_text(json.dumps(manifest))
    assert cli.main(["verify", RUN]) == 1
    assert outcome(published)["runs"] == []
    assert {data["verdict"] for data in outcome(published)["datasets"]} == {"differs"}


def test_missing_data_is_generated_where_a_run_needs_it(published: Project) -> None:
    for file in (published.results / "data").iterdir():
        file.unlink()
    name = next(n for n in published.archive.manifest["datasets"] if n.startswith("springs"))
    checks = {c.name: c.verdict for c in check_datasets(published.archive, Path("results"), [name])}
    assert checks.pop(name) == "identical"
    assert set(checks.values()) == {"not generated"}


def test_damaged_data_is_a_verdict(published: Project, capsys: pytest.CaptureFixture[str]) -> None:
    name = published.archive.runs[choose(published.archive, [RUN], seed=0)[0]]["dataset"]
    file = published.results / "data" / f"{name}.h5"
    file.unlink()  # it is shared
    file.write_text("rubbish")
    assert cli.main(["verify", RUN]) == 1
    assert "damaged:" in capsys.readouterr().out
    verdicts = {data["name"]: data["verdict"] for data in outcome(published)["datasets"]}
    assert verdicts[name].startswith("damaged:")


@pytest.mark.parametrize(("names", "code"), [([RUN], 1), ([], 0)])
def test_a_verification_of_nothing_is_no_success(
    published: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    code: int,
) -> None:
    monkeypatch.setattr(verify.Trainer, "train", lambda *_: [])
    assert cli.main(["verify", *names, "--budget", "1s"]) == code
    assert "nothing was verified" in capsys.readouterr().out
    assert outcome(published)["manifest_sha256"] == published.archive.state


def test_the_sample_is_drawn_by_the_seed_and_models_take_turns(published: Project) -> None:
    archive = published.archive
    first = choose(archive, [], seed=0)
    assert first == choose(archive, [], seed=0)
    assert any(first != choose(archive, [], seed=seed) for seed in range(1, 5))
    assert sorted(first) == sorted(archive.runs)
    models = [archive.runs[folder]["model"] for folder in first]
    assert len(set(models[:4])) == 4


def test_runs_are_named_by_configuration_seed_or_folder(published: Project) -> None:
    archive = published.archive
    both = choose(archive, [FULLY_CONNECTED], seed=0)
    assert [archive.runs[folder]["seed"] for folder in both] == [0, 1]
    assert choose(archive, [both[0]], seed=0) == both[:1]
    with pytest.raises(UserError, match=rf"not published. Published: .*{FULLY_CONNECTED[:20]}"):
        choose(archive, ["springs/Nobody"], seed=0)


def test_the_spread_is_pooled_over_configurations() -> None:
    groups = {"a": [1.0, math.e], "b": [1.0, math.e**3], "c": [5.0]}
    # Variances of the logarithms: 1/2 and 9/2, with one degree of freedom each.
    assert pooled_spread("validation/mse", groups) == pytest.approx(math.sqrt(2.5))
    assert pooled_spread("validation/accuracy", {"a": [0.5, 0.7]}) == pytest.approx(math.sqrt(0.02))
    assert pooled_spread("validation/accuracy", {"a": [0.5], "b": [0.7]}) is None


def test_the_text_puts_what_differs_first() -> None:
    check = {"verdict": "agrees", "run": "a", "is_complete": True, "metric": "m", "published": 1.0}
    check |= {"here": None, "difference_in_spreads": 0.5, "reason": "", "trained_epochs": 1}
    check |= {"epochs": 2, "spread_of": "its other seeds"}
    content = {"datasets": [], "runs": [check, {**check, "verdict": "differs", "run": "b"}]}
    lines = list(text(content))
    assert lines[0].startswith("differs")
    assert "published 1 here – (+0.50 spreads over its other seeds)" in lines[0]


@pytest.mark.parametrize("budget", ["15", "m", "-1m", "1d", "later"])
def test_a_wrong_budget_is_refused(budget: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["verify", f"--budget={budget}"])


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"datasets": [], "runs": [{}]}'])
def test_an_outcome_that_is_none_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outcome.json").write_text(text)
    assert cli.main(["verify", "--show", str(tmp_path / "outcome.json")]) == 1
    assert "not the outcome of a verification" in capsys.readouterr().err


def test_a_budget_of_nothing_trains_nothing(published: Project) -> None:
    shutil.rmtree(published.results / "data")
    assert cli.main(["verify", "--budget", "0"]) == 0
    assert outcome(published)["runs"] == []
    assert not (published.results / "data").exists()


def test_an_empty_archive_has_nothing_to_verify(project: Project) -> None:
    assert cli.main(["verify"]) == 1
    assert not (project.results / "verification.json").exists()
