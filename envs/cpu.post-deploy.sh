#!/usr/bin/env bash
# Put the package of this project into the environment that Snakemake has just made.
# An environment file cannot do it: Snakemake makes environments from a copy of the file, from
# where a path such as `..` leads elsewhere. This script runs in the folder that Snakemake runs in.
# Editable, so that the environment has the package as it is now and not as it was then; without
# dependencies, because the environment file names all of them.
set -euo pipefail

project="${LIETRANSFORMER_SOURCE:-$PWD}"
if ! grep -qs '^name = "lietransformer"' "$project/pyproject.toml"; then
    echo "expected the source of lietransformer in $project; found no pyproject.toml of it." >&2
    echo "Start snakemake in that folder, or set LIETRANSFORMER_SOURCE to it." >&2
    exit 1
fi
python -m pip install --quiet --disable-pip-version-check --no-input \
    --no-deps --no-build-isolation --editable "$project"
