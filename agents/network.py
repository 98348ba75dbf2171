"""The network of a placement policy: a score for each (job, candidate) pair with shared weights.

    logit of a pair = beta * its heuristic score + learned correction
    logit of waiting = beta * its heuristic score + learned correction

All weights are shared over jobs, candidates and GPU types, and types and jobs are pooled by their mean, so that
one set of weights serves any window, number of candidates and cluster. The corrections start at exactly zero:
an untrained network plays the heuristic of ``agents.heuristic``. Only pairs that the mask allows are scored,
a tenth of them or so, which is most of the speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from agents import heuristic
from hetenv.envs.view import CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES, TYPE_FEATURES

IMPOSSIBLE = -1e8  # logit of what the mask forbids: probability exactly 0, and finite, as distributions want

_FASTEST = heuristic.feature(JOB_FEATURES, "work")
_PRESENT = heuristic.feature(JOB_FEATURES, "present")
_N_JOB = len(JOB_FEATURES) + 1  # and the logarithm of its fastest remaining time
_N_PAIR = len(CANDIDATE_FEATURES) + 2  # and its heuristic score and regret
_MOST_LEAD = 5.0  # of the best placement over waiting, as the head of waiting sees it


class Encoding(NamedTuple):
    """What an encoder makes of B observations."""

    jobs: torch.Tensor  # (B, W, H)
    context: torch.Tensor  # (B, H), the whole state


class Encoder(nn.Module):
    """Embeds jobs, and pools jobs, GPU types and globals into one context."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.job_tower = _mlp(_N_JOB, width, width)
        self.type_tower = _mlp(len(TYPE_FEATURES), width)
        self.pool = _mlp(2 * width + len(GLOBAL_FEATURES), width)

    def forward(self, observation: Mapping[str, torch.Tensor]) -> Encoding:
        jobs = observation["jobs"]
        log_time = torch.logit(jobs[..., _FASTEST, None], eps=1e-4)  # of t / (t + time scale): ln(t / time scale)
        embedded = self.job_tower(torch.cat([jobs, log_time], dim=2))
        present = jobs[..., _PRESENT, None]
        mean_job = (embedded * present).sum(dim=1) / present.sum(dim=1).clamp(min=1.0)
        mean_type = self.type_tower(observation["types"]).mean(dim=1)
        return Encoding(embedded, self.pool(torch.cat([mean_job, mean_type, observation["globals"]], dim=1)))


class PairNetwork(nn.Module):
    """Logits of all actions, and the value of a state.

    Args:
        width: units of every hidden layer.
        beta: weight of the heuristic to begin with, positive; it is trained as its logarithm.
    """

    def __init__(self, width: int = 32, beta: float = 3.0) -> None:
        super().__init__()
        self.log_beta = nn.Parameter(torch.tensor(math.log(beta)))
        self.actor, self.critic = Encoder(width), Encoder(width)
        # The first layer of the pair's network, split so that its job and context parts are computed once.
        self.from_job = nn.Linear(width, width, bias=False)
        self.from_context = nn.Linear(width, width, bias=False)
        self.from_pair = nn.Linear(_N_PAIR, width)
        self.pair = nn.Linear(width, 1)
        self.wait_hidden, self.wait = _mlp(width + 1, width), nn.Linear(width, 1)
        self.value_hidden, self.value = _mlp(width, width), nn.Linear(width, 1)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, gain=math.sqrt(2))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for last in (self.pair, self.wait):
            nn.init.zeros_(last.weight)
        nn.init.orthogonal_(self.value.weight, gain=1.0)

    @property
    def beta(self) -> float:
        return float(self.log_beta.detach().exp())

    def forward(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(B, W * S + 1) logits, ``IMPOSSIBLE`` where the mask is 0.

        Args:
            observation: a batch of observations of ``hetenv/Placement-v0``.
        """
        candidates, allowed = observation["candidates"], observation["action_mask"] > 0.5
        n_batch, n_jobs, n_places, _ = candidates.shape
        by_rule = heuristic.score({key: value.numpy(force=True) for key, value in observation.items()})
        pair_score, wait_score, regret = (torch.from_numpy(array) for array in by_rule)
        jobs, context = self.actor(observation)

        batch, job, place = allowed[:, :-1].view(n_batch, n_jobs, n_places).nonzero(as_tuple=True)  # (E,) each
        score = pair_score[batch, job, place]
        pair = torch.cat([candidates[batch, job, place], score[:, None], regret[batch, job, place, None]], dim=1)
        by_job = self.from_job(jobs) + self.from_context(context)[:, None]  # (B, W, H)
        hidden = torch.relu(self.from_pair(pair) + by_job[batch, job])
        beta = self.log_beta.exp()
        logits = torch.full_like(observation["action_mask"], IMPOSSIBLE)
        logits[batch, job * n_places + place] = beta * score + self.pair(hidden)[:, 0]

        best = torch.where(allowed[:, :-1], pair_score.flatten(1), -torch.inf).amax(dim=1)
        lead = (best - wait_score).clamp(-_MOST_LEAD, _MOST_LEAD)
        wait = beta * wait_score + self.wait(self.wait_hidden(torch.cat([context, lead[:, None]], dim=1)))[:, 0]
        logits[:, -1] = torch.where(allowed[:, -1], wait, IMPOSSIBLE)
        return logits

    def values(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(B, 1) expected discounted returns."""
        return self.value(self.value_hidden(self.critic(observation).context))

    @torch.no_grad()
    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B,) the likeliest action for each of a batch of observations."""
        return self({key: torch.as_tensor(value) for key, value in observations.items()}).argmax(dim=1).numpy()


def _mlp(n_in: int, *widths: int) -> nn.Sequential:
    """Linear layers, each followed by a ReLU."""
    layers: list[nn.Module] = []
    for n_out in widths:
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers)
