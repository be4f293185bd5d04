"""A copy of the workflow in a folder of its own, run as a user would."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILES = ("Snakefile", "config.yaml", "workflow", "profiles", "slurm", "envs")
SNAKEMAKE = Path(sys.executable).with_name("snakemake")


@dataclass(frozen=True)
class Workplace:
    """A folder with the workflow in it."""

    path: Path

    @staticmethod
    def make(path: Path) -> "Workplace":
        path.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, path / name)
            else:
                shutil.copy(source, path / name)
        return Workplace(path)

    def copy(self, path: Path) -> "Workplace":
        """The same with its results, times of files included; what links to it does not change."""
        shutil.copytree(self.path, path, symlinks=True)
        return Workplace(path)

    def snakemake(self, *arguments: str, tier: str = "smoke") -> subprocess.CompletedProcess[str]:
        """Run Snakemake; further settings follow `--config` in the arguments."""
        given = list(arguments)
        place = given.index("--config") + 1 if "--config" in given else len(given)
        settings = [f"tier={tier}"] if "--config" in given else ["--config", f"tier={tier}"]
        return subprocess.run(
            [SNAKEMAKE, *given[:place], *settings, *given[place:]],
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
        )

    def would_train(self, *arguments: str, tier: str = "smoke") -> set[str]:
        """What a dry run says that it would train: model, task, variant and seeds."""
        process = self.snakemake("--dry-run", *arguments, tier=tier)
        assert process.returncode == 0, process.stderr
        return set(re.findall(r"Job \d+: Training (.*)", process.stdout + process.stderr))

    def would_do(self, *arguments: str, tier: str = "smoke") -> dict[str, int]:
        """How many jobs of each rule a dry run says that it would run."""
        process = self.snakemake("--dry-run", *arguments, tier=tier)
        assert process.returncode == 0, process.stderr
        text = process.stdout + process.stderr
        _, _, table = text.partition("Job stats:")
        rows = re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)
        return {name: int(count) for name, count in rows}
