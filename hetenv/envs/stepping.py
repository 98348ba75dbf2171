"""One step of an agent in one compiled call: act, let time pass until there is something to decide, observe.

A single environment is a batch of one: both run the same machine code.
"""

from hetenv.compiled import njit_in_place, njit_threaded
from hetenv.envs.addresses import arrays_at, copy_observation
from hetenv.envs.choices import nothing_to_place, refresh_mask, take_action
from hetenv.envs.observing import observe
from hetenv.envs.prefetching import prefetch_environment, prefetch_jobs
from hetenv.envs.view import forget_jobs
from hetenv.simulator.kernels import next_epoch
from hetenv.simulator.state import all_can_run, rewind

# In place of an action:
BEGIN = -2  # an episode begins
SKIP = -3  # nothing is done, not even copied


@njit_in_place
def step(fixed, state, timeline, view, observation, action):
    """Carry ``action`` out, let time pass until there is something to decide, and observe.

    That is when something can be placed, all is done or nothing can happen any more. An action outside the mask
    changes nothing but ``agent.invalid``.
    """
    clock = state.clock[0]
    agent = view.agent[0]
    before = clock.job_s
    wait = view.mask.shape[0] - 1
    n_jobs = fixed.jobs.shape[0]
    agent.invalid = action != BEGIN and (action < 0 or action > wait or not view.mask[action])
    if agent.invalid == 0:
        if 0 <= action < wait:
            take_action(fixed, state, timeline, view, action)
        time_moves = action == wait
        while True:
            if time_moves:
                next_epoch(fixed, state, timeline)
                agent.epoch += 1
            time_moves = True
            may_end = clock.n_done == n_jobs or (clock.n_running == 0 and clock.next_arrival == n_jobs)
            if may_end or not nothing_to_place(state, view):
                found = refresh_mask(fixed, state, view)
                if found or may_end:
                    agent.stalled = not found and clock.n_done < n_jobs
                    break
        observe(fixed, state, view, observation)
    agent.reward = (before - clock.job_s) / agent.time_scale_s


@njit_threaded
def step_many(table, actions, copies, first, end):
    """Environments first..end of ``table`` (N,) ADDRESS take one step each; ``actions`` (N,) int64.

    BEGIN makes the state that of time 0; the constants and draws of the episode have been written. With a job that can
    never run, the environment stalls at once. The observations are copied to ``copies`` as ``copy_observation`` says,
    while they are in the cache; not if that is of length 0.
    """
    for e in range(first, end):
        if actions[e] == SKIP:
            continue
        if e + 2 < end:
            _, state, _, view, observation = arrays_at(table[e + 2])
            prefetch_environment(state, view, observation)
        if e + 1 < end:
            fixed, state, _, view, _ = arrays_at(table[e + 1])
            prefetch_jobs(fixed, state, view)
        fixed, state, timeline, view, observation = arrays_at(table[e])
        if actions[e] == BEGIN:
            rewind(fixed, state)
            forget_jobs(fixed, view)
            observation.rows[:] = -2  # rows of other jobs
            if not all_can_run(fixed):
                view.agent[0].stalled = 1
                continue
        step(fixed, state, timeline, view, observation, actions[e])
        if copies.shape[0] > 0:
            copy_observation(table[e], copies, e)
