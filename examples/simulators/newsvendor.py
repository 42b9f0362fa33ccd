"""Twenty products are stocked before their demand is known. The pathwise gradient has a kink and no bias."""
import pasta

COST, PRICE = 1.0, 2.0
PRODUCTS = 20


def sample(x, rng):
    loss, gradient = 0.0, []
    for i, stock in enumerate(x):
        demand = rng.expovariate(1.0 / (5.0 + i))
        loss += COST * stock - PRICE * min(stock, demand)
        gradient.append(COST - (PRICE if stock < demand else 0.0))
    return gradient, loss


pasta.serve(sample, dimension=PRODUCTS, losses=True, name="newsvendor, 20 products")
