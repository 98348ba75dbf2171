"""Compiled moves of the simulator: a job takes or gives back its GPUs, time moves to the next event.

Every kernel works on ``Fixed`` and ``State`` (see state.py) and takes all sizes from their shapes.
Job status and list ends are spelled as numbers of state.py: 0 future, 1 waiting, 2 running, 3 done, -1 end.
"""

import numpy as np

from hetenv.compiled import njit as njit_allocating
from hetenv.compiled import njit_in_place as njit
from hetenv.performance import iteration_s
from hetenv.simulator.running_order import next_to_finish, push_running, remove_running, sort_running

# --- packing ------------------------------------------------------------------------------------------


@njit
def hold(state, job, node, gpus):
    clock = state.clock[0]
    at = clock.free_hold
    clock.free_hold = state.holds[at].next
    state.holds[at].node = node
    state.holds[at].gpus = gpus
    state.holds[at].next = state.jobs[job].first_hold
    state.jobs[job].first_hold = at
    state.jobs[job].n_nodes += 1
    state.jobs[job].n_gpus += gpus
    state.nodes[node].free -= gpus
    state.uses[state.nodes[node].type].free -= gpus
    state.counts[job, state.nodes[node].type] += gpus


@njit
def next_node(fixed, nodes, m, gpus):
    """The node of type m to take from next: the fullest that fits all ``gpus``, else (or by rule) the emptiest.

    Either way a job spans as few of the nodes as it can.
    """
    fullest_first = fixed.rules[0].emptiest == 0
    fitting = -1
    emptiest = fixed.types[m].first_node
    for node in range(fixed.types[m].first_node, fixed.types[m].end_node):
        free = nodes[node].free
        if fullest_first and free >= gpus and (fitting < 0 or free < nodes[fitting].free):
            fitting = node
            if free == gpus:
                break
        if free > nodes[emptiest].free:
            emptiest = node
    return fitting if fitting >= 0 else emptiest


@njit
def _pack_type(fixed, state, job, m, gpus):
    """Take ``gpus`` of type m on the fewest nodes, those that ``next_node`` names."""
    while gpus > 0:
        node = next_node(fixed, state.nodes, m, gpus)
        taken = min(gpus, state.nodes[node].free)
        hold(state, job, node, taken)
        gpus -= taken


@njit
def pack(fixed, nodes, counts):
    """Take ``counts`` (M,) GPUs from a scratch copy of the nodes by the same rule; returns the nodes they span."""
    n_nodes = 0
    for m in range(counts.shape[0]):
        gpus = counts[m]
        while gpus > 0:
            node = next_node(fixed, nodes, m, gpus)
            taken = min(gpus, nodes[node].free)
            nodes[node].free -= taken
            gpus -= taken
            n_nodes += 1
    return n_nodes


@njit
def unpack(state, nodes, job):
    """Give what ``job`` holds back to a scratch copy of the nodes."""
    at = state.jobs[job].first_hold
    while at >= 0:
        nodes[state.holds[at].node].free += state.holds[at].gpus
        at = state.holds[at].next


@njit
def job_rate(fixed, job, counts, n_nodes):
    """Iterations/s of ``job`` on ``counts`` (M,) GPUs over ``n_nodes`` nodes; 0 if it cannot run so."""
    n_types = counts.shape[0]
    used = 0
    n_gpus = 0
    m_used = 0
    nic = np.inf
    for m in range(n_types):
        if counts[m] > 0:
            used += 1
            n_gpus += counts[m]
            m_used = m
            nic = min(nic, fixed.types[m].nic_bytes_per_s)
    row = fixed.jobs[job].measured_row
    if row >= 0:
        if used != 1 or n_gpus >= fixed.measured.shape[2]:
            return 0.0
        return fixed.measured[row, m_used, n_gpus, 0 if n_nodes == 1 else 1]
    link = fixed.types[m_used].intra_bytes_per_s if n_nodes == 1 else nic
    spec = fixed.jobs[job]
    return 1.0 / iteration_s(counts, fixed.speed[job], spec.batch, spec.grad_bytes, link, fixed.rules[0].even_split)


# --- one job takes or gives back its GPUs -------------------------------------------------------------


@njit
def begin_running(fixed, state, job):
    """Set rate and finish of a job whose holds have just been taken."""
    now = state.clock[0].time_s
    record = state.jobs[job]
    record.rate = job_rate(fixed, job, state.counts[job], record.n_nodes)
    record.since_s = now
    record.as_of_s = now
    if np.isnan(record.start_s):
        record.start_s = now
        record.size = record.n_gpus
    else:
        record.as_of_s += fixed.jobs[job].restart_s
        record.restarts += 1
    record.status = 2
    clock = state.clock[0]
    if clock.first_waiting == job:
        following = record.next
        while following >= 0 and state.jobs[following].status != 1:
            following = state.jobs[following].next
        clock.first_waiting = following
    record.eta_s = record.as_of_s + record.remaining / record.rate
    push_running(state, job)


@njit
def start_job(fixed, state, job, counts):
    """Pack ``counts`` (M,) GPUs for a job that holds none; the caller has checked that they are free."""
    for m in range(counts.shape[0]):
        _pack_type(fixed, state, job, m, counts[m])
    begin_running(fixed, state, job)


@njit
def release_job(fixed, state, timeline, job):
    """Give back all GPUs of a running job and settle its work up to now; it waits again."""
    _give_back(fixed, state, timeline, job)
    clock = state.clock[0]
    state.jobs[job].status = 1
    if clock.first_waiting < 0 or job < clock.first_waiting:  # jobs are numbered by arrival
        clock.first_waiting = job


@njit
def _give_back(fixed, state, timeline, job):
    clock = state.clock[0]
    now = clock.time_s
    record = state.jobs[job]
    record.remaining = max(0.0, record.remaining - record.rate * max(0.0, now - record.as_of_s))
    record.service_gpu_s += record.n_gpus * (now - record.since_s)
    if record.restarts > 0:
        record.lost_gpu_s += record.n_gpus * min(now - record.since_s, fixed.jobs[job].restart_s)
    at = record.first_hold
    while at >= 0:
        held = state.holds[at]
        state.nodes[held.node].free += held.gpus
        state.uses[state.nodes[held.node].type].free += held.gpus
        if clock.n_segments < timeline.shape[0]:
            segment = timeline[clock.n_segments]
            segment.start_s = record.since_s
            segment.end_s = now
            segment.job = job
            segment.node = held.node
            segment.gpus = held.gpus
            clock.n_segments += 1
        following = held.next
        held.next = clock.free_hold
        clock.free_hold = at
        at = following
    state.counts[job, :] = 0
    record.first_hold = -1
    record.n_gpus = 0
    record.n_nodes = 0
    record.rate = 0.0
    record.as_of_s = now
    record.eta_s = np.inf
    remove_running(state, job)


@njit
def _leave(state, job, finish_s):
    """Take a finished job out of the system."""
    clock = state.clock[0]
    record = state.jobs[job]
    record.status = 3
    record.finish_s = finish_s
    record.remaining = 0.0
    if record.prev >= 0:
        state.jobs[record.prev].next = record.next
    else:
        clock.first_active = record.next
    if record.next >= 0:
        state.jobs[record.next].prev = record.prev
    else:
        clock.last_active = record.prev
    clock.n_active -= 1
    clock.n_done += 1


@njit
def _admit_arrivals(fixed, state):
    """Let every job that has arrived by now join the queue; returns how many did."""
    clock = state.clock[0]
    admitted = 0
    while clock.next_arrival < fixed.jobs.shape[0] and fixed.jobs[clock.next_arrival].arrival_s <= clock.time_s:
        job = np.int32(clock.next_arrival)
        record = state.jobs[job]
        record.status = 1
        record.as_of_s = clock.time_s
        record.prev = clock.last_active
        record.next = -1
        if clock.last_active >= 0:
            state.jobs[clock.last_active].next = job
        else:
            clock.first_active = job
        clock.last_active = job
        if clock.first_waiting < 0:
            clock.first_waiting = job
        clock.n_active += 1
        clock.next_arrival += 1
        admitted += 1
    return admitted


# --- time -----------------------------------------------------------------------------------------------


@njit
def _pass_time(state, until_s):
    clock = state.clock[0]
    step_s = until_s - clock.time_s
    clock.job_s += clock.n_active * step_s
    for m in range(state.uses.shape[0]):
        state.uses[m].busy_gpu_s -= state.uses[m].free * step_s  # + total * time, added when read
    clock.time_s = until_s


@njit
def advance_events(fixed, state, timeline, until_s):
    """Move to the next arrival or completion, or to ``until_s`` if that comes first.

    All events of one instant are taken together. Returns how many jobs came or went.
    """
    clock = state.clock[0]
    next_s = until_s
    if clock.next_arrival < fixed.jobs.shape[0]:
        next_s = min(next_s, fixed.jobs[clock.next_arrival].arrival_s)
    if clock.n_running > 0:
        next_s = min(next_s, state.jobs[next_to_finish(state)].eta_s)
    if next_s == np.inf:
        return 0
    _pass_time(state, next_s)
    moved = 0
    while clock.n_running > 0 and state.jobs[next_to_finish(state)].eta_s <= next_s:
        job = next_to_finish(state)
        _give_back(fixed, state, timeline, job)
        _leave(state, job, next_s)
        moved += 1
    return moved + _admit_arrivals(fixed, state)


@njit_allocating
def advance_whole_steps(fixed, state, timeline, round_s):
    """One round in Gavel's form; returns how many jobs came or went.

    Each running job makes ``min(floor(rate * round_s), remaining)`` iterations (at least one) and has
    them when they are done; the round ends with the last of them, and arrivals join at its end.
    """
    clock = state.clock[0]
    begin_s = clock.time_s
    round_jobs = state.running[: clock.n_running].copy()
    end_s = begin_s
    for job in round_jobs:
        end_s = max(end_s, _whole_steps_end(state.jobs[job], begin_s, round_s)[1])
    _pass_time(state, end_s)
    for job in range(clock.next_arrival, fixed.jobs.shape[0]):
        if fixed.jobs[job].arrival_s > end_s:
            break
        clock.job_s += end_s - fixed.jobs[job].arrival_s
    moved = 0
    for job in round_jobs:
        record = state.jobs[job]
        steps, finish_s = _whole_steps_end(record, begin_s, round_s)
        record.remaining -= steps
        if record.remaining > 0.0:
            record.as_of_s = end_s
            record.eta_s = end_s + record.remaining / record.rate
        else:
            clock.job_s -= end_s - finish_s
            for m in range(state.uses.shape[0]):
                state.uses[m].busy_gpu_s -= state.counts[job, m] * (end_s - finish_s)
            record.rate = 0.0  # its work is settled
            clock.time_s = finish_s
            _give_back(fixed, state, timeline, job)
            clock.time_s = end_s
            _leave(state, job, finish_s)
            moved += 1
    sort_running(state)
    return moved + _admit_arrivals(fixed, state)


@njit
def _whole_steps_end(record, begin_s, round_s):
    """Iterations that a job makes in a round that begins now, and when the last of them is done."""
    steps = min(max(np.floor(record.rate * round_s), 1.0), record.remaining)
    return steps, max(begin_s, record.as_of_s) + steps / record.rate


@njit
def next_epoch(fixed, state, timeline):
    """Move to the next decision epoch, or to the end of the last job; see the rules of ``Simulator``.

    The caller has made sure that something will happen, and that the timeline has room for a segment a GPU.
    """
    if fixed.rules[0].whole_steps > 0:
        _next_whole_steps_epoch(fixed, state, timeline)
    elif fixed.rules[0].round_s > 0.0:
        _next_round(fixed, state, timeline)
    else:
        clock = state.clock[0]
        advance_events(fixed, state, timeline, np.inf)
        while clock.n_active == 0 and clock.n_done < fixed.jobs.shape[0]:
            advance_events(fixed, state, timeline, np.inf)


@njit
def _next_round(fixed, state, timeline):
    """Let events pass up to the next tick at which some job is in the system."""
    clock = state.clock[0]
    round_s = fixed.rules[0].round_s
    while clock.n_done < fixed.jobs.shape[0]:
        clock.round += 1
        if clock.n_active == 0:  # idle: skip the empty rounds
            next_arrival_s = fixed.jobs[clock.next_arrival].arrival_s
            clock.round = max(clock.round, np.int64(np.ceil(next_arrival_s / round_s)))
        tick_s = clock.round * round_s
        while clock.n_done < fixed.jobs.shape[0]:
            advance_events(fixed, state, timeline, tick_s)
            if clock.time_s >= tick_s:
                break
        if clock.n_active > 0:
            return


@njit
def _next_whole_steps_epoch(fixed, state, timeline):
    """Gavel's rounds, up to one that may decide."""
    clock = state.clock[0]
    rules = fixed.rules[0]
    began_s = clock.time_s
    may_decide_at_s = began_s + rules.min_reallocation_s if began_s > 0.0 else 0.0  # as in Gavel
    moved = 0
    while clock.n_done < fixed.jobs.shape[0]:
        if clock.n_running > 0:
            moved += advance_whole_steps(fixed, state, timeline, rules.round_s)
        else:  # nothing runs: on to the next arrival, or to where waiting jobs may be placed
            waits = clock.n_active > 0 and moved > 0
            moved += advance_events(fixed, state, timeline, may_decide_at_s if waits else np.inf)
        if clock.n_active > 0 and moved > 0 and clock.time_s >= may_decide_at_s:
            return


@njit
def gather_waiting(state, jobs):
    """Write the first waiting jobs by arrival into ``jobs`` (n,); returns how many there are, up to n."""
    found = 0
    job = state.clock[0].first_waiting
    while job >= 0 and found < jobs.shape[0]:
        if state.jobs[job].status == 1:
            jobs[found] = job
            found += 1
        job = state.jobs[job].next
    return found


@njit
def gather_active(fixed, state, waiting_only, jobs, figures, counts):
    """Write the active, or only the waiting, jobs by arrival: ``jobs`` (A,), ``figures`` (A, 3), ``counts`` (A, M).

    The figures are remaining iterations, attained GPU-seconds and seconds to the finish (inf while waiting).
    """
    clock = state.clock[0]
    job = clock.first_waiting if waiting_only else clock.first_active
    row = 0
    while job >= 0:
        record = state.jobs[job]
        if waiting_only and record.status != 1:
            job = record.next
            continue
        running_s = max(0.0, clock.time_s - record.as_of_s)
        jobs[row] = job
        figures[row, 0] = max(0.0, record.remaining - record.rate * running_s)
        figures[row, 1] = record.service_gpu_s
        if record.status == 2:
            figures[row, 1] += record.n_gpus * (clock.time_s - record.since_s)
        figures[row, 2] = record.eta_s - clock.time_s
        for m in range(counts.shape[1]):
            counts[row, m] = state.counts[job, m]
        job = record.next
        row += 1
