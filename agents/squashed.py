"""Times as observations hold them, t / (t + time scale), and back; finite on all of [0, 1]."""

import numpy as np

from hetenv.compiled import njit_in_place as njit


@njit
def scaled_time(squashed):
    """t / time scale."""
    squashed = min(max(squashed, 0.0), 1.0 - 1e-4)
    return squashed / (1.0 - squashed)


@njit
def log_scaled_time(squashed):
    """ln(t / time scale)."""
    squashed = min(max(squashed, 1e-4), 1.0 - 1e-4)
    return np.log(squashed / (1.0 - squashed))
