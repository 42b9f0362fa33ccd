"""The problems of simoptlib that have gradients and box constraints, by their names; the queue's gradient is mended."""
import numpy as np
from simopt.directory import problem_directory
from simopt.models.mm1queue import MM1MinMeanSojournTime, MM1Queue

NAMES = ["CNTNEWS-1", "MM1-1", "FIXEDSAN-1", "SAN-1", "AMBULANCE-1"]


class MendedQueue(MM1Queue):
    """The queue with the derivative of Lindley's recursion; the package leaves out customers who left before (see docs/simulators.md). Same draws, same times."""

    def replicate(self):
        rate = max(self.factors["mu"], self.factors["epsilon"])
        total = self.factors["warmup"] + self.factors["people"]
        between = [self.arrival_model.random(self.factors["lambda"]) for _ in range(total)]
        service = [self.service_model.random(rate) for _ in range(total)]
        sojourn, slope = np.zeros(total), np.zeros(total)
        for i in range(total):
            wait = sojourn[i - 1] - between[i] if i > 0 else 0.0
            sojourn[i] = max(wait, 0.0) + service[i]
            slope[i] = -service[i] / rate + (slope[i - 1] if wait > 0 else 0.0)
        kept = slice(self.factors["warmup"], None)
        responses = {"avg_sojourn_time": np.mean(sojourn[kept])}
        return responses, {"avg_sojourn_time": {"mu": float(np.mean(slope[kept]))}}


class MendedSojournTime(MM1MinMeanSojournTime):
    model_class = MendedQueue


def problem(name, **factors):
    """A problem with its own start and budget, unless `factors` says otherwise."""
    kind = MendedSojournTime if name == "MM1-1" else problem_directory[name]
    return kind(fixed_factors=factors)
