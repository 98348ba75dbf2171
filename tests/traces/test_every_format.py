"""What holds for every format: its file is told from the others, loads, and fails in one line when damaged."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.errors import InputError
from hetenv.traces import FORMATS, load_workload, read_trace, samples

# format -> the names of its jobs in order of arrival, their seconds on a GPU of speed 1, their GPUs
JOBS: dict[str, tuple[list[str], list[float], list[int]]] = {
    "hetenv": (["x", "y"], [5, 5], [1, 2]),  # 10 samples at 2 samples/s; 20 on two GPUs
    "gavel": (["0", "1"], [12.5, 5], [1, 4]),  # 100 steps at 8 and at 20 steps/s
    "pollux": (["1", "2", "0"], [5, 5, 66], [1, 1, 2]),
    "pollux-workload": (["net-0", "net-1"], [60, 10 * (5 + 4 * (64 / 6 - 8) / 8)], [2, 6]),
    "philly": (["a", "c"], [60, 60], [2, 1]),
    "helios": (["1", "3"], [120, 50 * 86_400], [8, 72]),
    "acme": (["k1", "k2"], [3000, 60], [1024, 1]),
    "pai": (["j1"], [150], [3]),
    "openb": (["p0", "p1"], [100, 900], [1, 8]),
    "supercloud": (["7", "7#2"], [100, 50], [4, 4]),
    "muri": (["0", "1"], [5095, 2.5], [8, 1]),
    "synergy": (["0", "0#2", "2"], [100, 200, 50], [1, 2, 1]),
    "chronus": (["1", "0"], [3600, 1200], [4, 1]),
    "elasticflow": (["0", "1"], [250, 50], [2, 1]),
    "tiresias": (["0", "1"], [164, 147], [1, 8]),
    "swf": (["1", "2"], [100, 30], [4, 8]),
    "durations": (["0", "1"], [121, 4000], [1, 1]),
}


def quiet(path, options, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_workload(path, **options, **more)


def test_every_format_has_a_sample():
    assert set(JOBS) == set(samples.TEXTS) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_jobs_of_the_sample(tmp_path, name):
    path, options = samples.write(tmp_path, name)
    trace = read_trace(path, **options)
    workload = trace.workload
    ids, seconds, gpus = JOBS[name]
    assert trace.format.name == name
    assert workload.job_id.tolist() == ids
    assert workload.min_gpus.tolist() == workload.max_gpus.tolist() == gpus
    run_s = workload.iterations * workload.batch / (workload.min_gpus * workload.speed.max(axis=1))
    np.testing.assert_allclose(run_s, seconds)
    assert trace.tally.kept == len(workload)
    assert trace.tally.rows == trace.tally.kept + trace.tally.dropped.total()


@pytest.mark.parametrize("name", FORMATS)
def test_no_other_format_claims_the_sample(tmp_path, name):
    head = samples.TEXTS[name]
    assert [entry.name for entry in FORMATS.values() if entry.recognises(head)] == [name]


@pytest.mark.parametrize("name", FORMATS)
def test_line_ends_of_windows_and_a_byte_order_mark(tmp_path, name):
    path, options = samples.write(tmp_path, name)
    path.write_bytes(b"\xef\xbb\xbf" + samples.TEXTS[name].replace("\n", "\r\n").encode())
    assert quiet(path, options).job_id.tolist() == JOBS[name][0]


@pytest.mark.parametrize("name", FORMATS)
def test_a_git_lfs_pointer_is_named(tmp_path, name):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    path, options = samples.write(tmp_path, name, pointer)
    for chosen in (None, name):
        with pytest.raises(InputError, match="a Git LFS pointer instead of the data"):
            load_workload(path, chosen, **options)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", ['" "\n', "\x1c1\n", ",\n", "#\n", ";\n", "[]", "{}"])
def test_a_file_of_next_to_nothing_is_refused(tmp_path, name, text):
    path, options = samples.write(tmp_path, name, text)
    with pytest.raises(InputError, match=str(tmp_path)):
        load_workload(path, name, **options)


CELLS = [
    "",
    "0",
    "-1",
    "None",
    "nan",
    "inf",
    "1e999",
    "9" * 25,
    "0.5",
    "x",
    '"',
    "2020-02-30 00:00:00",
    "\0",
    "é",
    "[]",
]


@st.composite
def damaged(draw, text):
    """``text`` after a few blows: cells replaced, lines cut, swapped and doubled, characters lost."""
    for _ in range(draw(st.integers(1, 4))):
        blow = draw(st.sampled_from(["cell", "line", "cut", "double", "character"]))
        lines = text.split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        if blow == "cell":
            separator = "\t" if "\t" in lines[at] else "," if "," in lines[at] else ":" if ":" in lines[at] else " "
            cells = lines[at].split(separator)
            cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(CELLS))
            lines[at] = separator.join(cells)
        elif blow == "line":
            del lines[at]
        elif blow == "cut":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
        elif blow == "double":
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
        text = "\n".join(lines)
        if blow == "character" and text:
            place = draw(st.integers(0, len(text) - 1))
            text = text[:place] + draw(st.sampled_from(["", *CELLS])) + text[place + 1 :]
    return text


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), lenient=st.booleans(), told=st.booleans())
def test_damaged_files_end_in_a_table_or_in_one_line(tmp_path_factory, name, data, lenient, told):
    folder = tmp_path_factory.mktemp("damaged")
    path, options = samples.write(folder, name, data.draw(damaged(samples.TEXTS[name])))
    workload, message = None, ""
    try:
        workload = quiet(path, options, format=name if told else None, lenient=lenient)
    except InputError as error:
        message = str(error)
    if workload is None:
        assert "\n" not in message
        assert str(folder) in message
    else:
        assert len(workload) > 0
        assert (workload.min_gpus >= 1).all()
        assert (workload.iterations > 0).all()
        assert np.isfinite(workload.arrival_s).all()
