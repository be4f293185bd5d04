"""Atomic writes of files that someone may be reading."""

from pathlib import Path

from lietransformer.files import cannot_write, complete_or_absent


def write_text(path: Path, text: str) -> None:
    """A text file that is complete or absent."""
    with complete_or_absent(path) as part:
        try:
            part.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from error
