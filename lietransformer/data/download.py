"""Downloads, made once and verified by their checksum."""

import hashlib
import re
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError
from lietransformer.files import cannot_write, complete_or_absent
from lietransformer.progress import progress

_BLOCK = 1 << 18  # bytes
_CHECKSUM = re.compile(r"(md5:[0-9a-f]{32}|sha256:[0-9a-f]{64})")


def is_url(source: str) -> bool:
    """Whether a source has to be downloaded."""
    return re.match(r"(https?|ftp)://", source) is not None


def require_checksum_format(checksum: str) -> None:
    """Refuse a malformed checksum."""
    if not _CHECKSUM.fullmatch(checksum):
        raise ValueError(
            "a checksum is md5: and 32, or sha256: and 64 digits from 0 to 9 and a to f"
        )


def fetch(url: str, checksum: str, folder: Path) -> Path:
    """The file at a URL: downloaded, or from an earlier download if that is still intact.

    Args:
        url: where it is.
        checksum: "md5:…" or "sha256:…"; a file that does not match is discarded.
        folder: where it is kept, under a name made of the checksum.
    """
    path = folder / f"download-{checksum.partition(':')[2][:16]}"
    if path.exists():
        require_checksum(path, checksum)
        return path
    with complete_or_absent(path) as part:
        _download(url, part)
        require_checksum(part, checksum, name=url)
    return path


def require_checksum(path: Path, checksum: str, name: str | None = None) -> None:
    """Refuse a file with another checksum."""
    algorithm, _, expected = checksum.partition(":")
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}. Check its name and "
            "permissions."
        ) from error
    if found != expected:
        raise UserError(
            f"{name or path} must have the checksum {checksum}, got {algorithm}:{found}. Check the "
            "checksum; if it is right, the file is damaged: remove it and get it again."
        )


def _download(url: str, part: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            size = int(response.headers.get("Content-Length", 0)) or None
            with (
                open(part, "r+b", buffering=0) as file,
                progress(total=size, description="downloading", unit="B") as bar,
            ):
                while block := response.read(_BLOCK):
                    _write(file, block, part)
                    bar.update(len(block))
    except (
        urllib.error.URLError,
        HTTPException,
        TimeoutError,
        ConnectionError,
        ValueError,
    ) as error:
        raise UserError(
            f"cannot download {url}: {getattr(error, 'reason', None) or error}. Try again later, "
            "or download it yourself and give its path."
        ) from error


def _write(file: Any, block: bytes, path: Path) -> None:
    try:
        while block:
            block = block[file.write(block) :]
    except OSError as error:
        raise cannot_write(path, error) from error
