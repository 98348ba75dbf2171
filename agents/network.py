"""The network of a placement policy: a score for each (job, candidate) pair with shared weights.

    score of a pair = beta * its heuristic score + learned correction
    score of waiting = beta * its heuristic score + learned correction
    P(wait) = sigmoid(score of waiting - highest score of a pair); else a pair, by the softmax of their scores

Waiting is decided first, so that its probability does not fall with the number of pairs, and so that the likeliest
actions do what sampled ones do on average: played by the argmax of one softmax over all, a policy that waits one time
in three would always wait where three pairs share the rest.

All weights are shared over jobs, candidates and GPU types, so that one set of them serves any window, number of
candidates and cluster. The corrections start at exactly zero: an untrained network plays the heuristic of
``agents.heuristic``. What the network sees is in ``agents.inputs``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from agents.heuristic import REGRET_WEIGHT, TOLERATED_REGRET
from agents.inputs import N_PAIR, N_STATE, N_WAIT, Inputs

IMPOSSIBLE = -1e8  # logit of what the mask forbids: probability exactly 0, and finite, as distributions want


class PairNetwork(nn.Module):
    """Logits of all actions, and the value of a state.

    Args:
        width: units of every hidden layer.
        beta: weight of the heuristic to begin with, positive; it is trained as its logarithm.
    """

    def __init__(self, width: int = 32, beta: float = 3.0) -> None:
        super().__init__()
        self.log_beta = nn.Parameter(torch.tensor(math.log(beta)))
        self.pair_hidden, self.pair = _mlp(N_PAIR, width), nn.Linear(width, 1)
        self.wait_hidden, self.wait = _mlp(N_WAIT, width), nn.Linear(width, 1)
        self.value_hidden, self.value = _mlp(N_STATE, width, width), nn.Linear(width, 1)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, gain=math.sqrt(2))
                nn.init.zeros_(module.bias)
        for last in (self.pair, self.wait):
            nn.init.zeros_(last.weight)
        nn.init.zeros_(self.value.weight)

    @property
    def beta(self) -> float:
        return float(self.log_beta.detach().exp())

    def forward(self, inputs: Inputs) -> torch.Tensor:
        """(B, W * S + 1) log-probabilities, ``IMPOSSIBLE`` where the mask is 0."""
        pairs, wait, _ = self._log_probs(inputs)
        logits = pairs.new_full((len(wait), inputs.n_actions), IMPOSSIBLE)
        logits[torch.from_numpy(inputs.row), torch.from_numpy(inputs.action)] = pairs
        logits[:, -1] = wait
        return logits

    def log_probs(self, inputs: Inputs, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B,) log-probabilities of ``actions`` (B,), and (B,) entropies; no column for a forbidden action is made."""
        pairs, wait, row = self._log_probs(inputs)
        entropy = -(wait.exp() * wait).index_add(0, row, pairs.exp() * pairs)
        waits = actions == inputs.n_actions - 1
        taken = torch.from_numpy(inputs.action) == actions[row]
        chosen = torch.where(waits, wait, IMPOSSIBLE).index_put((row[taken],), pairs[taken])
        return chosen, entropy

    def values(self, inputs: Inputs) -> torch.Tensor:
        """(B, 1) expected discounted returns."""
        return self.value(self.value_hidden(torch.from_numpy(inputs.state)))

    @torch.no_grad()
    def likeliest(self, inputs: Inputs) -> torch.Tensor:
        """(B,) the likelier of waiting and placing, then the likeliest pair."""
        log_probs = self(inputs)
        best = log_probs[:, :-1].argmax(dim=1)
        return torch.where(log_probs[:, -1] > math.log(0.5), inputs.n_actions - 1, best)

    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B,) the likeliest actions for a batch of observations of ``hetenv/Placement-v0``."""
        return self.likeliest(Inputs.of(observations)).numpy()

    def _log_probs(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of the allowed pairs (E,) and of waiting (B,); and the rows (E,) of the pairs."""
        row = torch.from_numpy(inputs.row)
        beta = self.log_beta.exp()
        pairs = beta * torch.from_numpy(inputs.score)
        pairs = pairs + self.pair(self.pair_hidden(torch.from_numpy(inputs.pairs)))[:, 0]
        wait = self.wait(self.wait_hidden(torch.from_numpy(inputs.wait)))[:, 0]
        wait = wait - beta * REGRET_WEIGHT * TOLERATED_REGRET
        may_wait = torch.from_numpy(inputs.may_wait)
        wait = torch.where(may_wait, wait, IMPOSSIBLE)

        best = torch.full_like(wait, 2.0 * IMPOSSIBLE).scatter_reduce(0, row, pairs, "amax")
        relative = pairs - best[row]
        log_total = torch.zeros_like(wait).index_add(0, row, relative.exp()).clamp(min=1.0).log()
        log_place = nn.functional.logsigmoid(best - wait)
        log_wait = torch.where(may_wait, nn.functional.logsigmoid(wait - best), IMPOSSIBLE)
        return relative + (log_place - log_total)[row], log_wait, row


def _mlp(n_in: int, *widths: int) -> nn.Sequential:
    """Linear layers, each followed by a tanh."""
    layers: list[nn.Module] = []
    for n_out in widths:
        layers += [nn.Linear(n_in, n_out), nn.Tanh()]
        n_in = n_out
    return nn.Sequential(*layers)
