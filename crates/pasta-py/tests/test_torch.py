"""Modules of PyTorch."""

import numpy as np
import pasta_opt
import pytest

torch = pytest.importorskip("torch")


def rows(count=400):
    torch.manual_seed(3)
    x = torch.randn(count, 3, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64) + 0.5 + 0.1 * torch.randn(count, dtype=torch.float64)
    return torch.utils.data.TensorDataset(x, y)


def loss(model, batch):
    x, y = batch
    return ((model(x)[:, 0] - y) ** 2).mean() / 2


def linear():
    torch.manual_seed(1)
    return torch.nn.Linear(3, 1, dtype=torch.float64)


def test_a_module_is_trained_to_a_certificate():
    module = linear()
    result = pasta_opt.torch.minimize(module, loss, rows(), target=0.02)
    assert result.certificate.is_certified
    x, y = rows().tensors
    module.zero_grad()
    loss(module, (x, y)).backward()
    norm = np.sqrt(sum(float((p.grad**2).sum()) for p in module.parameters()))
    assert norm <= 0.02


def test_what_cannot_be_trained_is_refused_with_a_sentence():
    odd = torch.nn.Module()
    odd.weight = torch.nn.Parameter(torch.ones(2, dtype=torch.complex128))
    with pytest.raises(TypeError, match="parameters must be real, but weight has dtype torch.complex128"):
        pasta_opt.torch.minimize(odd, loss, rows(), budget=1000)
    x, y = rows().tensors
    for data in ((x, y), {"x": x, "y": y}):
        with pytest.raises(TypeError, match="data must be a dataset, such as torch.utils.data.TensorDataset"):
            pasta_opt.torch.minimize(linear(), loss, data, budget=1000)
    normed = torch.nn.Sequential(linear(), torch.nn.BatchNorm1d(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="batch norm cannot train on one sample"):
        pasta_opt.torch.minimize(normed, loss, rows(), budget=4000)


def test_a_sampler_is_as_good_as_a_dataset_and_bits_repeat():
    x, y = rows().tensors

    def sampler(rng, n):
        i = torch.from_numpy(rng.integers(0, len(y), size=n))
        return x[i], y[i]

    found = [pasta_opt.torch.minimize(linear(), loss, data, budget=3_000).x for data in (rows(), sampler, sampler)]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_after_an_error_the_module_is_as_it_was():
    module = linear()
    before = [p.detach().clone() for p in module.parameters()]
    data = rows()
    state, calls = torch.random.get_rng_state(), 0

    def failing(model, batch):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError("no more")
        return loss(model, batch)

    with pytest.raises(OSError, match="no more"):
        pasta_opt.torch.minimize(module, failing, data, budget=10_000)
    assert all((a == b).all() for a, b in zip(before, module.parameters(), strict=True))
    assert (torch.random.get_rng_state() == state).all()


def test_dropout_is_the_same_at_both_points_and_buffers_stay():
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(3, dtype=torch.float64), torch.nn.Linear(3, 1, dtype=torch.float64))
    buffers = [buffer.clone() for buffer in module.buffers()]
    method = pasta_opt.methods.Storm(eta=0.01, momentum=0.5, steps=20, batch=16)
    found = [pasta_opt.torch.minimize(module, loss, rows(), method=method).ledger.evaluations for _ in range(2)]
    assert found[0] == found[1]
    assert all((a == b).all() for a, b in zip(buffers, module.buffers(), strict=True))


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="torch.nn.Module"):
        pasta_opt.torch.minimize(3, loss, rows(), budget=10)
    with pytest.raises(TypeError, match="data must be"):
        pasta_opt.torch.minimize(linear(), loss, 3, budget=10)
    frozen = linear().requires_grad_(False)
    with pytest.raises(ValueError, match="no parameters"):
        pasta_opt.torch.minimize(frozen, loss, rows(), budget=10)


def test_a_loader_and_losses_of_torch_are_taken():
    loader = torch.utils.data.DataLoader(rows(), batch_size=32, shuffle=True)

    def squared(model, batch):
        return torch.nn.functional.mse_loss(model(batch[0]), batch[1])

    for given in (torch.nn.functional.mse_loss, torch.nn.MSELoss()):
        results = [pasta_opt.torch.minimize(linear(), *pair, budget=2_000) for pair in ((given, loader_of_columns()), (squared, column_rows()))]
        assert results[0].x.tobytes() == results[1].x.tobytes()
    assert pasta_opt.torch.minimize(linear(), loss, loader, budget=2_000).x.tobytes() == pasta_opt.torch.minimize(linear(), loss, rows(), budget=2_000).x.tobytes()
    with pytest.raises(ValueError, match='reduction="sum"'):
        pasta_opt.torch.minimize(linear(), torch.nn.MSELoss(reduction="sum"), loader, budget=2_000)


def column_rows():
    x, y = rows().tensors
    return torch.utils.data.TensorDataset(x, y[:, None])


def loader_of_columns():
    return torch.utils.data.DataLoader(column_rows(), batch_size=32)


def test_a_loop_of_torch_stops_when_it_is_certified():
    module, data = linear(), column_rows()
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    is_done = pasta_opt.StopWhenCertified(pasta_opt.torch.oracle(module, torch.nn.functional.mse_loss, loader), 0.1, every=20)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(100):
        for x, y in loader:
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(module(x), y).backward()
            optimiser.step()
            if is_done():
                break
        if is_done.certificate is not None and is_done.certificate.is_certified:
            break
    assert is_done.certificate.is_certified
    module.zero_grad()
    torch.nn.functional.mse_loss(module(data.tensors[0]), data.tensors[1]).backward()
    assert np.sqrt(sum(float((p.grad**2).sum()) for p in module.parameters())) <= 0.1
    # The point is that of the module now.
    assert pasta_opt.certify(pasta_opt.torch.oracle(module, torch.nn.functional.mse_loss, data), target=0.1, seed=7).is_certified
