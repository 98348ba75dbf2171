"""Public traces, fetched from their owners into the cache, checked, and unpacked.

A file takes its final name only when it is whole and has been checked. What is checked:

* its SHA-256, where the table has one;
* its size, where the table has that;
* where no SHA-256 is published, the one of the first download, which is kept beside the file as
  ``<file>.sha256``: it tells a damaged or exchanged file later on, not a wrong first download.

An interrupted download goes on where it stopped, as far as the server can do that. A trace that lies in the
cache needs no network. Files that were fetched by other means may be put there: they are checked likewise.
"""

from __future__ import annotations

import shutil
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hetenv.cache import cache_dir
from hetenv.errors import InputError
from hetenv.files import cannot_write, replace_file
from hetenv.traces.public import PublicFile, PublicTrace, public_traces
from hetenv.traces.trace_file import LFS_POINTER, Progress, no_progress

CHUNK_BYTES = 1 << 16  # of which an interruption loses one
TIMEOUT_S = 60.0  # without a byte
AGAIN = "try again later, the download goes on where it stopped; or put the file there yourself, from {}"


def fetch(
    name: str, *, folder: Path | str | None = None, table: Path | None = None, progress: Progress = no_progress
) -> Path:
    """The file of a public trace, for ``hetenv.load_workload``; it is downloaded at the first call.

    One warning says which licence it is under.

    Args:
        name: a name in ``configs/traces.yaml``, such as philly or helios-venus.
        folder: where traces are kept, each in a folder of its own; None: ``traces`` in the cache of hetenv.
        table: a table of your own in place of that one, of the same form.
        progress: ``progress(done, total)`` hears of the bytes of each download.

    Raises:
        InputError: an unknown name; no answer, or another than the file; a Git LFS pointer in its place; a wrong
            size or SHA-256; an archive without the file; a folder that cannot be written.
    """
    traces = public_traces(table)
    if name not in traces:
        raise InputError("public trace", repr(name), f"use one of {', '.join(traces)}")
    trace = traces[name]
    warnings.warn(f"{name}: {trace.licence}; source {trace.source}", stacklevel=2)
    place = Path(folder or cache_dir() / "traces") / (trace.folder or name)
    for path, file in trace.files.items():
        wanted = [member for member in file.unpack if not (place / member).exists()]
        if not file.unpack or wanted:
            _have(place / path, file, trace, trace.url(path), progress)
        for member in wanted:
            _take_out(place / path, member, place / member)
    return place / trace.jobs


def _have(target: Path, file: PublicFile, trace: PublicTrace, url: str, progress: Progress) -> None:
    """See that ``target`` is there, whole and checked."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # the licence and the faults are what users need to hear
    record = target.with_name(f"{target.name}.sha256")
    known = file.sha256 or (record.read_text().partition(" ")[0] if record.exists() else None)
    download = _Download(target, file, trace.source, progress)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(url, known and f"sha256:{known}", fname=target.name, path=target.parent, downloader=download)
    except InputError:
        raise
    except OSError as error:
        raise cannot_write(target, error) from None
    except ValueError:  # pooch's word for another hash
        remedy = f"try again; if it stays so, the owner changed the file: compare with {trace.source}"
        raise InputError(str(target), f"{url} has not the SHA-256 {known}", remedy) from None
    _check_size(target, file.bytes, trace.source)
    if known is None:
        found = pooch.file_hash(str(target))
        with replace_file(record) as out:
            out.write(f"{found}  {target.name}\n")
        warnings.warn(f"{target}: no checksum is published; SHA-256 {found} is what later calls expect", stacklevel=3)


def _check_size(path: Path, n_bytes: int | None, source: str) -> None:
    found = path.stat().st_size
    if n_bytes not in (None, found):
        remedy = f"remove it and try again; if it stays so, the owner changed the file: compare with {source}"
        raise InputError(str(path), f"{found} bytes instead of {n_bytes}", remedy)


@dataclass
class _Download:
    """What pooch calls to fetch one file; the part that has come waits beside the target for the next attempt."""

    target: Path
    file: PublicFile
    source: str
    progress: Progress

    def __call__(self, url: str, draft: Any, _pooch: Any) -> None:
        part = self.target.with_name(f".{self.target.name}.part")
        with self._plain_errors(url, part):
            if not self._receive(url, part):  # the server has nothing behind what is there already
                part.unlink()
                self._receive(url, part)
        try:
            self._refuse_pointer(url, part)
            _check_size(part, self.file.bytes, self.source)
        except InputError:
            part.unlink()  # whole, and wrong
            raise
        part.replace(draft)

    def _receive(self, url: str, part: Path) -> bool:
        """Add to ``part`` what is missing; False: the server cannot go on there."""
        import requests

        done = part.stat().st_size if part.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
            if done and answer.status_code == requests.codes.requested_range_not_satisfiable:
                return False
            answer.raise_for_status()
            if answer.status_code != requests.codes.partial_content:
                done = 0  # all of it comes anew
            total = done + int(answer.headers.get("Content-Length", 0))
            with part.open("ab" if done else "wb") as out:
                for chunk in answer.iter_content(CHUNK_BYTES):
                    out.write(chunk)
                    done += len(chunk)
                    self.progress(done, max(done, total))
        return True

    def _refuse_pointer(self, url: str, part: Path) -> None:
        with part.open("rb") as file:
            if file.read(len(LFS_POINTER)) != LFS_POINTER.encode():
                return
        remedy = (
            f"the owner's quota is spent: try later, or run 'git lfs pull' in a clone of {self.source} "
            f"and put the file at {self.target}"
        )
        raise InputError(url, "a Git LFS pointer instead of the data", remedy)

    @contextmanager
    def _plain_errors(self, url: str, part: Path) -> Iterator[None]:
        import requests

        try:
            yield
        except requests.HTTPError as error:
            remedy = f"see {self.source} for where it is now, and put it at {self.target}"
            raise InputError(url, str(error).partition(" for url")[0], remedy) from None
        except requests.RequestException as error:
            come = part.stat().st_size if part.exists() else 0
            fault = f"broke off after {come} bytes" if come else f"no answer ({type(error).__name__})"
            raise InputError(url, fault, AGAIN.format(self.source)) from None


def _take_out(archive: Path, member: str, target: Path) -> None:
    """Write the file whose path in a .zip or tar archive ends in ``member`` to ``target``."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _member(archive, member) as packed, replace_file(target, "wb") as out:
            shutil.copyfileobj(packed, out, CHUNK_BYTES)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(str(archive), f"cannot be unpacked ({error})", "remove it and try again") from None
    except OSError as error:
        raise cannot_write(target, error) from None


@contextmanager
def _member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped, zipped.open(_full_name(zipped.namelist(), archive, member)) as packed:
            yield packed
    else:
        with tarfile.open(archive) as tarred:
            content = tarred.extractfile(_full_name(tarred.getnames(), archive, member))
            if content is None:
                raise InputError(str(archive), f"{member} is no file in it", "remove it and try again")
            yield content


def _full_name(names: list[str], archive: Path, member: str) -> str:
    for name in names:
        if f"/{name}".endswith(f"/{member}"):
            return name
    raise InputError(str(archive), f"no {member} in it", "remove it and try again")
