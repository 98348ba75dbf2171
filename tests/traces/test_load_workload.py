"""Choosing a format, files that are no traces, jobs that the cluster cannot hold."""

import gzip

import pytest

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload

OWN = "arrival_s,iterations,min_gpus,speed_a\n"
POLLUX = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def write(tmp_path, content):
    path = tmp_path / "trace.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def message(*arguments, **options):
    with pytest.raises(InputError) as error:
        load_workload(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_formats_are_told_apart_by_content(tmp_path):
    own = load_workload(write(tmp_path, OWN + "0,10,1,2\n"))
    assert (own.types, own.iterations[0]) == (("a",), 10)
    pollux = load_workload(write(tmp_path, POLLUX + "2017-10-09 07:01:55,66.0,2,132.0,vc\n"))
    assert (pollux.types, pollux.min_gpus[0]) == (("gpu",), 2)
    assert "line 1, job_type: 'LM'" in message(write(tmp_path, "LM\t" * 9 + "0\n"))  # Gavel's ten fields


def test_byte_order_mark_is_no_content(tmp_path):
    assert len(load_workload(write(tmp_path, b"\xef\xbb\xbf" + (OWN + "0,10,1,2\n").encode()))) == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty file"),
        (b" \n\n", "empty file"),
        (gzip.compress(b"arrival_s"), "no text"),
        (b"\x00\x01\x02\x03", "no text"),
        (OWN.encode("utf-16-le"), "no text"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS pointer"),
        (b"hello world\n", "unknown content, first line 'hello world'"),
        (OWN.encode(), "a header without rows"),
        (b"arrival_s,arrival_s,iterations,speed_a\n0,0,1,1\n", "arrival_s comes twice"),
        (OWN.encode() + b'0,"10,1,2\n', "unexpected end of data"),
        (OWN.encode() + b"0,10,1\n", "line 2, number of fields: 3; give 4"),
        (OWN.encode() + b"0,10,1,2,3\n", "line 2, number of fields: 5; give 4"),
        (b"arrival_s,speed_a\n0,1\n", "column iterations is missing"),
        (b"arrival_s,iterations\n0,1\n", "no speed_<type> column"),
        (b"timestamp,num_gpus\n2017-10-09 07:01:55,1\n", "column duration is missing"),
    ],
)
def test_files_that_are_no_traces(tmp_path, content, found):
    path = write(tmp_path, content)
    assert message(path).startswith(str(path))
    assert found in message(path)


def test_paths_that_are_no_files(tmp_path):
    assert "no such file" in message(tmp_path / "missing.csv")
    assert "is a folder" in message(tmp_path)


def test_unknown_format_and_options_of_no_use(tmp_path):
    path = write(tmp_path, OWN + "0,10,1,2\n")
    assert message(path, "csv").startswith("trace format: 'csv'; use one of hetenv, gavel, pollux, ")
    assert "type_speed: of no use for format hetenv" in message(path, type_speed={"a": 1.0})
    assert "throughputs: of no use for format pollux" in message(path, "pollux", throughputs="x.json")


def test_a_named_format_is_not_second_guessed(tmp_path):
    assert "column timestamp is missing" in message(write(tmp_path, OWN + "0,10,1,2\n"), "pollux")


@pytest.mark.parametrize(
    "content",
    [OWN + "5,10,9,2\n0,10,4,2\n", POLLUX + "2017-10-09 07:01:55,66.0,9,594.0,vc\n2017-10-09 07:01:50,5,4,20,vc\n"],
    ids=["hetenv", "pollux"],
)
def test_jobs_too_large_for_the_cluster(tmp_path, content):
    path = write(tmp_path, content)
    cluster = Cluster.from_counts({"a": 8})
    assert message(path, cluster=cluster).startswith(f"{path}, line 2, job 0: needs 9 GPUs of a")
    with pytest.warns(UserWarning, match=r"dropped 1 row \(1 x GPUs: more than") as caught:
        workload = load_workload(path, cluster=cluster, lenient=True)
    assert len(caught) == 1
    assert workload.job_id.tolist() == ["1"]


def test_types_the_cluster_lacks(tmp_path):
    path = write(tmp_path, OWN + "0,10,1,2\n")
    assert "which the cluster (8 b) lacks" in message(path, cluster=Cluster.from_counts({"b": 8}))


def test_lenient_drops_rows_of_the_wrong_width(tmp_path):
    path = write(tmp_path, OWN + "0,10,1,2,3\n1,10,1,2\n2,10,1\n")
    with pytest.warns(UserWarning, match=r"dropped 2 rows \(2 x number of fields"):
        assert load_workload(path, lenient=True).arrival_s.tolist() == [1]
