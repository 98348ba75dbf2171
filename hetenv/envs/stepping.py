"""One step of an agent in one compiled call: act, let time pass until there is something to decide, observe.

A single environment is a batch of one: both run the same machine code.
"""

from hetenv.compiled import njit_in_place as njit
from hetenv.compiled import njit_threaded
from hetenv.envs.addresses import arrays_at
from hetenv.envs.choices import nothing_to_place, refresh_mask, take_action
from hetenv.envs.observing import observe
from hetenv.envs.view import forget_jobs
from hetenv.simulator.kernels import next_epoch
from hetenv.simulator.state import rewind


@njit
def settle(fixed, state, timeline, view, observation):
    """Let time pass until something can be placed, all is done or nothing can happen any more; then observe."""
    clock = state.clock[0]
    agent = view.agent[0]
    n_jobs = fixed.jobs.shape[0]
    while True:
        may_end = clock.n_done == n_jobs or (clock.n_running == 0 and clock.next_arrival == n_jobs)
        if may_end or not nothing_to_place(state, view):
            found = refresh_mask(fixed, state, view)
            if found or may_end:
                agent.stalled = not found and clock.n_done < n_jobs
                break
        next_epoch(fixed, state, timeline)
        agent.epoch += 1
    observe(fixed, state, view, observation)


@njit
def step(fixed, state, timeline, view, observation, action):
    """Carry ``action`` out and settle; one outside the mask changes nothing but ``agent.invalid``."""
    clock = state.clock[0]
    agent = view.agent[0]
    before = clock.job_s
    wait = view.mask.shape[0] - 1
    agent.invalid = 0
    if action < 0 or action > wait or not view.mask[action]:
        agent.invalid = 1
    else:
        if action == wait:
            next_epoch(fixed, state, timeline)
            agent.epoch += 1
        else:
            take_action(fixed, state, timeline, view, action)
        settle(fixed, state, timeline, view, observation)
    agent.reward = (before - clock.job_s) / agent.time_scale_s


@njit_threaded
def step_many(table, actions, first, end):
    """Environments first..end of ``table`` (N,) ADDRESS take one step each; ``actions`` (N,) int64."""
    for e in range(first, end):
        fixed, state, timeline, view, observation = arrays_at(table[e])
        step(fixed, state, timeline, view, observation, actions[e])


@njit_threaded
def rewind_many(table, chosen):
    """The environments ``chosen`` (n,) int64 of ``table`` (N,) ADDRESS go back to time 0."""
    for e in chosen:
        fixed, state, _, _, _ = arrays_at(table[e])
        rewind(fixed, state)


@njit_threaded
def begin_many(table, chosen):
    """The environments ``chosen`` (n,) int64 of ``table`` (N,) ADDRESS come to the first decision of a new episode.

    Their constants, draws and states of time 0, or of the first arrival, have been written.
    """
    for e in chosen:
        fixed, state, timeline, view, observation = arrays_at(table[e])
        forget_jobs(fixed, view)
        observation.rows[:] = -2  # rows of other jobs
        settle(fixed, state, timeline, view, observation)
