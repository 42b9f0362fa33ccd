"""An instrument that takes a millisecond for a reading: the mean of five noisy settings. It waits, and computes next to nothing."""
import time

import pasta

DIMENSION = 5


def sample(x, rng):
    time.sleep(0.001)
    errors = [setting - rng.gauss(i + 1.0, 1.0) for i, setting in enumerate(x)]
    return errors, sum(error * error for error in errors) / 2


pasta.serve(sample, dimension=DIMENSION, losses=True, name="instrument, 1 ms a reading")
