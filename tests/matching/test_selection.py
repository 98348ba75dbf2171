"""What HiGHS prints past its log switch stays out of the way."""

from __future__ import annotations

import ctypes

import pytest

from hetenv.matching.selection import _quiet_stdout


def test_prints_of_the_c_library_are_swallowed_and_later_ones_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    c_library = ctypes.CDLL(None)
    with _quiet_stdout():
        c_library.printf(b"noise\n")
    print("news", flush=True)
    assert capfd.readouterr().out == "news\n"
