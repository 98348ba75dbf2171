"""ElasticFlow's job lists (github.com/pkusys/ElasticFlow; ASPLOS 2023): the columns of Tiresias, times in seconds.

``ddl``, the deadline, and ``batch_size`` are not used; ``duration`` is the run time on ``num_gpu`` GPUs.
"""

from __future__ import annotations

from functools import partial

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.tiresias import read, recognises_list

FORMAT = record_format(
    "elasticflow", "job list of ElasticFlow, times in s", partial(recognises_list, signature="ddl"), read
)
