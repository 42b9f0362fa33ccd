"""One day of a newsvendor with three products: order x[i] of each, before the demand is known."""
import pasta

COST, PRICE = 1.0, 2.0  # what one unit costs, and what it sells for


def sample(x, rng):
    """The loss of one random day, and its gradient."""
    gradient, loss = [], 0.0
    for i, order in enumerate(x):
        demand = rng.expovariate(1.0 / (5.0 + i))
        loss += COST * order - PRICE * min(order, demand)
        gradient.append(COST - (PRICE if order < demand else 0.0))
    return gradient, loss


pasta.serve(sample, losses=True, name="newsvendor, 3 products")
