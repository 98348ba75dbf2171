"""Public traces: fetched once, checked, unpacked; a server on this machine stands for their owners'."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from hetenv.errors import InputError
from hetenv.traces import FORMATS, fetch, load_workload, samples
from hetenv.traces.public import public_traces
from scripts import import_trace

DATA = samples.TEXTS["helios"].encode() * 2000  # some hundred kB
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"


class Owner:
    """Files by path, and how they are served; ``asked`` notes each request's path and Range."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.ranges = True
        self.break_off_at: int | None = None
        self.url = ""


@pytest.fixture
def owner() -> Iterator[Owner]:
    made = Owner()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            made.asked.append((self.path, wanted))
            if self.path not in made.files:
                self.send_error(404)
                return
            data, first = made.files[self.path], 0
            if wanted and made.ranges:
                first = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
                if first >= len(data):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(data) - first))
            self.end_headers()
            self.wfile.write(data[first : made.break_off_at])

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


def table(folder: Path, url: str, file: str = "log.csv", jobs: str = "log.csv", **checks: Any) -> Path:
    """A table of one trace, ``t``, of one file."""
    entry = {"format": "helios", "licence": "CC BY 4.0", "source": "https://owner.example", "jobs": jobs}
    path = folder / "table.yaml"
    path.write_text(yaml.safe_dump({"t": entry | {"base": f"{url}/", "files": {file: checks}}}))
    public_traces.cache_clear()
    return path


def quietly(name: str, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fetch(name, **options)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def final_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def test_a_whole_file_is_fetched_once_and_its_licence_named(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, sha256=sha256(DATA), bytes=len(DATA))}
    seen = []
    with pytest.warns(UserWarning, match=r"^t: CC BY 4.0; source https://owner.example$"):
        path = fetch("t", progress=lambda done, total: seen.append((done, total)), **options)
    assert path == tmp_path / "cache" / "t" / "log.csv"
    assert path.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    owner.files.clear()
    assert quietly("t", **options) == path
    assert len(owner.asked) == 1
    assert final_files(tmp_path / "cache") == ["log.csv"]


def test_a_download_that_broke_off_goes_on_where_it_stopped(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, sha256=sha256(DATA))}
    owner.break_off_at = 100_000
    with pytest.raises(InputError, match=r"broke off after \d+ bytes; try again later"):
        quietly("t", **options)
    assert final_files(tmp_path / "cache") == []
    owner.break_off_at = None
    assert quietly("t", **options).read_bytes() == DATA
    (_, first), (_, second) = owner.asked
    assert first is None
    assert second is not None
    assert int(second.removeprefix("bytes=").rstrip("-")) > 0


def test_a_server_without_ranges_sends_all_of_it_again(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, sha256=sha256(DATA))}
    owner.break_off_at, owner.ranges = 100_000, False
    with pytest.raises(InputError, match="broke off"):
        quietly("t", **options)
    owner.break_off_at = None
    assert quietly("t", **options).read_bytes() == DATA


def test_a_part_longer_than_the_file_is_thrown_away(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, sha256=sha256(DATA))}
    part = tmp_path / "cache" / "t" / ".log.csv.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(DATA + b"more")
    assert quietly("t", **options).read_bytes() == DATA


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ({"sha256": "0" * 64}, "has not the SHA-256 0000"),
        ({"bytes": len(DATA) + 1}, f"{len(DATA)} bytes instead of {len(DATA) + 1}"),
    ],
)
def test_another_content_is_refused(owner: Owner, tmp_path: Path, checks: dict[str, Any], message: str) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, **checks)}
    for _ in range(2):  # the second attempt starts afresh
        with pytest.raises(InputError, match=message) as caught:
            quietly("t", **options)
        assert "\n" not in str(caught.value)
        assert list((tmp_path / "cache" / "t").iterdir()) == []
    assert [wanted for _, wanted in owner.asked] == [None, None]


def test_a_git_lfs_pointer_is_named(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = POINTER
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url, sha256=sha256(DATA))}
    with pytest.raises(InputError, match=r"a Git LFS pointer instead of the data; .* 'git lfs pull'"):
        quietly("t", **options)
    assert list((tmp_path / "cache" / "t").iterdir()) == []


def test_no_answer(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(InputError, match=r"/log.csv: no answer \(ConnectionError\); try again later"):
        quietly("t", folder=tmp_path / "cache", table=table(tmp_path, url))
    assert list((tmp_path / "cache" / "t").iterdir()) == []


def test_a_file_that_moved(owner: Owner, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"404 .*; see https://owner.example for where it is now"):
        quietly("t", folder=tmp_path / "cache", table=table(tmp_path, owner.url))


def test_without_a_published_checksum_the_first_download_counts(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    options = {"folder": tmp_path / "cache", "table": table(tmp_path, owner.url)}
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        path = fetch("t", **options)
    assert f"no checksum is published; SHA-256 {sha256(DATA)}" in str(notes[-1].message)
    path.write_bytes(DATA[:-1])  # damaged: fetched again, and the same
    assert quietly("t", **options).read_bytes() == DATA
    path.write_bytes(b"damaged")
    owner.files["/log.csv"] = DATA + b"another"
    with pytest.raises(InputError, match="has not the SHA-256"):
        quietly("t", **options)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_files_of_an_archive(owner: Owner, tmp_path: Path, kind: str) -> None:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as files:
            files.writestr("__MACOSX/data/Venus/._log.csv", b"")
            files.writestr("data/Venus/log.csv", DATA)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as files:
            entry = tarfile.TarInfo("data/Venus/log.csv")
            entry.size = len(DATA)
            files.addfile(entry, io.BytesIO(DATA))
    data = packed.getvalue()
    owner.files[f"/data.{kind}"] = data
    made = table(tmp_path, owner.url, f"data.{kind}", "Venus/log.csv", sha256=sha256(data), unpack=["Venus/log.csv"])
    path = quietly("t", folder=tmp_path / "cache", table=made)
    assert path == tmp_path / "cache" / "t" / "Venus" / "log.csv"
    assert path.read_bytes() == DATA
    assert quietly("t", folder=tmp_path / "cache", table=made) == path
    assert len(owner.asked) == 1


@pytest.mark.parametrize("damage", ["no archive", "cut", "no such member"])
def test_an_archive_that_cannot_be_unpacked(owner: Owner, tmp_path: Path, damage: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        entry = tarfile.TarInfo("other.csv" if damage == "no such member" else "log.csv")
        entry.size = len(DATA)
        files.addfile(entry, io.BytesIO(DATA))
    data = {"no archive": DATA, "cut": packed.getvalue()[:-200]}.get(damage, packed.getvalue())
    owner.files["/data.tar.gz"] = data
    made = table(tmp_path, owner.url, "data.tar.gz", sha256=sha256(data), unpack=["log.csv"])
    with pytest.raises(InputError, match=r"data\.tar\.gz: (cannot be unpacked|no log\.csv in it)"):
        quietly("t", folder=tmp_path / "cache", table=made)
    assert final_files(tmp_path / "cache") == ["data.tar.gz"]


def test_a_folder_that_cannot_be_made(owner: Owner, tmp_path: Path) -> None:
    owner.files["/log.csv"] = DATA
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match="cannot be written"):
        quietly("t", folder=tmp_path / "cache", table=table(tmp_path, owner.url))


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match="'nowhere'; use one of philly, helios-venus"):
        fetch("nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds list"),
        ("t: {format: helios}", r"traces\.t\.licence: missing"),
        ("t: 5", r"traces\.t: 5"),
        (
            "t: {format: a, licence: b, source: c, jobs: ../d, files: {}}",
            r"traces\.t\.jobs: '\.\./d'; .* leaves the folder",
        ),
        ("t: {format: a, licence: b, source: c, jobs: d, files: {d: {sha256: 0}}}", r"files\.d\.sha256: 0"),
    ],
)
def test_a_table_of_another_form(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"table\.yaml.*{message}"):
        fetch("t", table=path)


def test_the_table_that_ships() -> None:
    traces = public_traces()
    assert {"philly", "helios-venus", "acme-seren", "acme-kalos", "pai", "openb", "gavel-artifact", "pollux"} < {
        *traces
    }
    for name, trace in traces.items():
        assert trace.format in FORMATS, name
        assert trace.licence, name
        assert trace.jobs in {*trace.files, *(member for file in trace.files.values() for member in file.unpack)}, name
        assert all(trace.url(path).startswith("https://") for path in trace.files), name
    unchecked = {name for name, trace in traces.items() if any(file.sha256 is None for file in trace.files.values())}
    assert unchecked == {"acme-seren", "openb"}


def test_files_put_into_the_cache_by_hand(shared: Path, tmp_path: Path) -> None:
    """Copies of the owners' files pass the checks of the table that ships, without any network."""
    for name in ("pollux", "pollux-workload-1", "gavel-artifact", "gavel-fairness", "gavel-makespan"):
        trace = public_traces()[name]
        for path in trace.files:
            source = (
                shared / "data" / ("gavel/traces/physical_cluster" if name.startswith("gavel") else "pollux") / path
            )
            target = tmp_path / (trace.folder or name) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        path = quietly(name, folder=tmp_path)
        assert len(load_workload(path, lenient=True)) > 0


def test_the_command_line_fetches(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owner.files["/log.csv"] = samples.TEXTS["helios"].encode()
    made = table(tmp_path, owner.url, sha256=sha256(owner.files["/log.csv"]))
    monkeypatch.setattr(
        import_trace, "fetch", lambda name, **options: fetch(name, folder=tmp_path / "cache", table=made, **options)
    )
    assert import_trace.main(["--fetch", "t", "--out", str(tmp_path / "jobs.csv")]) == 0
    shown = capsys.readouterr()
    assert "note: t: CC BY 4.0; source https://owner.example" in shown.err
    assert "jobs.csv: 2 jobs" in shown.out
    assert import_trace.main(["--fetch", "u", "--describe"]) == 2
    assert import_trace.main(["log.csv", "--fetch", "t", "--describe"]) == 2
    assert import_trace.main(["--describe"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in errors] == [
        "error: public trace: 'u'",
        "error: trace: log.csv and --fetch",
        "error: trace: none",
    ]
