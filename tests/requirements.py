"""What some tests need beside Python. Where it is missing they are skipped, but not by CI."""

import os
import shutil

import pytest

from lietransformer.kernels import build as library

# Set by .ci/run: there, what is missing fails.
IS_ALL_REQUIRED = "LIETRANSFORMER_REQUIRE_ALL" in os.environ


def needs(is_there: bool, what: str) -> pytest.MarkDecorator:
    """A mark for tests that cannot do without."""
    return pytest.mark.skipif(not is_there and not IS_ALL_REQUIRED, reason=f"needs {what}")


needs_compiler = needs(bool(library.find_compiler()), "a C compiler")
needs_latex = needs(
    shutil.which("pdflatex") is not None, "pdflatex with booktabs (texlive-latex-recommended)"
)
