"""Paired comparison of schedulers: every scheduler works through the same jobs, episode by episode.

schedulers = {"fifo": partial(baselines.make, "fifo"), "jps": partial(baselines.make, "jps")}
evaluation = evaluate("online", schedulers, episodes=32, seed=1000)
evaluation.summary()["schedulers"]["jps"]["ratio_ci95"]
evaluation.save("results/online")
"""

from hetenv.evaluation.compare import evaluate
from hetenv.evaluation.report import Evaluation
from hetenv.evaluation.trials import Trial

__all__ = ["Evaluation", "Trial", "evaluate"]
