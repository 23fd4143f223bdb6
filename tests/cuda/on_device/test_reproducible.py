"""`flambeau.reproducible` on a device: the same bits again, and for a sample in any batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as torch

F = torch.nn.functional
SAMPLES = slice(3, 5)
Case = tuple[Callable[..., Any], list[tuple[int, ...]]]


@pytest.fixture(autouse=True)
def _no_level_after() -> Iterator[None]:
    yield
    torch.reproducible(None)


IN_ANY_BATCH: dict[str, Case] = {
    "linear": (F.linear, [(9, 40), (70, 40), (70,)]),
    "linear of sequences": (F.linear, [(9, 5, 40), (70, 40), (70,)]),
    "linear of rows with gaps": (lambda x, w, b: F.linear(x[:, :3], w, b), [(9, 5, 40), (70, 40), (70,)]),
    "linear of many": (F.linear, [(700, 128), (256, 128), (256,)]),
    "wide product": (lambda x, w: x @ w, [(300, 256), (256, 128)]),
    "conv2d with a stride": (lambda x, w: F.conv2d(x, w, stride=2), [(9, 16, 32, 32), (16, 16, 3, 3)]),
    "product": (lambda x, w: x @ w, [(9, 40), (40, 33)]),
    "products": (lambda x, w: x @ w, [(9, 7, 21), (21, 5)]),
    "products of a batch": (lambda x: x @ x.mT, [(9, 7, 21)]),
    "softmax": (lambda x: x.softmax(-1), [(9, 333)]),
    "softmax of columns": (lambda x: x.softmax(1), [(9, 33, 5)]),
    "sum": (lambda x: x.sum(-1), [(9, 5000)]),
    "mean of planes": (lambda x: x.mean((2, 3)), [(9, 4, 7, 7)]),
    "sum of steps": (lambda x: x.sum(1), [(9, 300, 7)]),
    "variance": (lambda x: x.var(-1), [(9, 77)]),
    "norm": (lambda x: x.norm(dim=-1), [(9, 77)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (77,), w, b), [(9, 77), (77,), (77,)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (77,), w), [(9, 77), (77,)]),
    "group_norm": (lambda x: F.group_norm(x, 2), [(9, 4, 8, 8)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [(9, 4, 8, 8), (6, 4, 3, 3), (6,)]),
    "conv_transpose1d": (F.conv_transpose1d, [(9, 4, 8), (4, 6, 3), (6,)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [(9, 4, 8, 8)]),
    "cumsum": (lambda x: x.cumsum(-1), [(9, 300)]),
    "attention": (
        lambda q, k: F.scaled_dot_product_attention(q, q * k, q - k, is_causal=True),
        [(9, 2, 11, 16), (1,)],
    ),
    "gelu": (F.gelu, [(9, 600)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", IN_ANY_BATCH)
def test_a_sample_gives_the_same_in_any_batch(name: str, dtype: Any) -> None:
    function, shapes = IN_ANY_BATCH[name]
    torch.manual_seed(0)
    x, *others = [torch.randn(*shape).to(dtype).cuda().requires_grad_() for shape in shapes]
    few = x.detach()[SAMPLES].clone().requires_grad_()
    order = torch.tensor([8, 4, 3, 0], device="cuda")
    turned = x.detach()[order].requires_grad_()
    with torch.reproducible("batch"):
        result, of_few, of_turned = (function(each, *others) for each in (x, few, turned))
        weights = torch.randn_like(result)
        (grad,) = torch.autograd.grad(result, x, weights)
        (grad_of_few,) = torch.autograd.grad(of_few, few, weights[SAMPLES])
        (grad_of_turned,) = torch.autograd.grad(of_turned, turned, weights[order])
    assert torch.equal(result[SAMPLES], of_few)
    assert torch.equal(result[order], of_turned)
    assert torch.equal(grad[SAMPLES], grad_of_few)
    assert torch.equal(grad[order], grad_of_turned)
    rounding = 1e-4 if dtype is torch.float32 else 3e-2
    wanted = function(*[each.detach().cpu().double() for each in (x, *others)])
    assert torch.allclose(result.detach().cpu().double(), wanted, rounding, 10 * rounding)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_a_token_decoded_with_a_cache_gives_what_it_gives_in_the_sequence(dtype: Any) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 300, 16).to(dtype).cuda().unbind(0)
    with torch.reproducible("batch"):
        whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        for last in (0, 1, 30, 31, 32, 63, 64, 100, 299):
            seen = slice(0, last + 1)
            token = F.scaled_dot_product_attention(q[:, :, last : last + 1], k[:, :, seen], v[:, :, seen])
            assert torch.equal(token, whole[:, :, last : last + 1]), last


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_padding_beside_a_sequence_changes_nothing(dtype: Any) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 150, 16).to(dtype).cuda().unbind(0)
    lengths = torch.tensor([150, 70], device="cuda")
    seen = torch.arange(150, device="cuda") < lengths[:, None]
    with torch.reproducible("batch"):
        together = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None])
        alone = F.scaled_dot_product_attention(*[each[1:, :, :70].contiguous() for each in (q, k, v)])
    assert torch.equal(together[1:, :, :70], alone)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_gradient_of_a_weight_is_the_same_in_each_run(dtype: Any) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(40, 70).to(dtype).cuda()
    x = torch.randn(9, 5, 40).to(dtype).cuda()
    found = []
    with torch.reproducible("batch"):
        for _ in range(2):
            layer.zero_grad()
            layer(x).float().square().sum().backward()
            found.append([each.grad.clone() for each in layer.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    exact = torch.nn.Linear(40, 70).double()
    exact.load_state_dict({name: each.double().cpu() for name, each in layer.state_dict().items()})
    exact(x.double().cpu()).square().sum().backward()
    rounding = 1e-5 if dtype is torch.float32 else 3e-2
    for one, other in zip(found[0], exact.parameters(), strict=True):
        assert torch.allclose(one.cpu().double(), other.grad, rounding, rounding * other.grad.abs().max())


@pytest.mark.parametrize("level", ["run", "batch"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str, level: str) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(6, 8, batch_first=True).cuda()
    x = torch.randn(7, 5, 6).cuda()
    wanted = layer.cpu()(x.cpu())[0]
    layer.cuda()
    with torch.reproducible(level):
        result = layer(x)[0]
        assert torch.equal(result, layer(x)[0])
        if level == "batch":
            assert torch.equal(result[SAMPLES], layer(x[SAMPLES].clone())[0])
    assert torch.allclose(result.cpu(), wanted, 1e-5, 1e-5)


def test_what_was_prepared_at_another_level_is_not_used() -> None:
    x, w = torch.randn(9, 40).cuda(), torch.randn(40, 33).cuda()
    y = torch.randn(9, 5000).cuda()

    def run() -> list[Any]:
        return [x @ w, y.sum(-1), y.softmax(-1), F.layer_norm(y, (5000,))]

    with torch.reproducible("batch"):
        first = run()
    run()
    with torch.reproducible("batch"):
        assert all(torch.equal(one, other) for one, other in zip(first, run(), strict=True))


SCATTERS: dict[str, Callable[[Any, Any], Any]] = {
    "scatter_add": lambda i, v: torch.zeros(5, device="cuda").scatter_add(0, i, v),
    "scatter_reduce prod": lambda i, v: torch.ones(5, device="cuda").scatter_reduce(0, i, v, "prod"),
    "index_add": lambda i, v: torch.zeros(5, device="cuda").index_add(0, i, v),
    "index_put": lambda i, v: torch.zeros(5, device="cuda").index_put((i,), v, accumulate=True),
    "bincount": lambda i, v: torch.bincount(i, v),
    "cumsum": lambda i, v: v.cumsum(0),
    "cumprod": lambda i, v: v.cumprod(0),
}


@pytest.mark.filterwarnings("ignore:.*on the host")
@pytest.mark.parametrize("name", SCATTERS)
def test_values_that_meet_are_combined_in_order(name: str) -> None:
    torch.manual_seed(0)
    index, values = torch.randint(0, 5, (400,)), torch.randn(400) * 0.1 + 1
    given = index.cuda(), values.cuda()
    with torch.reproducible("run"):
        found = [SCATTERS[name](*given).cpu() for _ in range(3)]
    assert all(torch.equal(found[0], each) for each in found)
    if name in ("cumsum", "cumprod"):
        wanted = getattr(values.double(), name)(0)
    elif name == "scatter_reduce prod":
        wanted = torch.ones(5).double().scatter_reduce(0, index, values.double(), "prod")
    else:
        wanted = torch.zeros(5).double().index_add(0, index, values.double())
    assert torch.allclose(found[0].double(), wanted, 1e-4)


def test_what_cannot_be_kept_raises() -> None:
    x = torch.randn(4, 8).cuda()
    torch.reproducible("batch")
    with pytest.raises(RuntimeError, match=r"fft.* cannot be kept by reproducible\('batch'\): it needs rfft"):
        torch.fft.fft(x)
    with pytest.raises(RuntimeError, match=r"mm on this device cannot be kept .* a product of matrices of complex64"):
        x.to(torch.complex64) @ x.to(torch.complex64).T
    for dtype in (torch.float32, torch.bfloat16):
        q = torch.randn(2, 2, 8, 16).to(dtype).cuda()
        with pytest.raises(RuntimeError, match=r'dropout cannot be kept by reproducible\("batch"\)'):
            F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        for dropped in (F.dropout, torch.nn.Dropout(), F.dropout2d, F.alpha_dropout):
            with pytest.raises(RuntimeError, match=r'dropout cannot be kept by reproducible\("batch"\)'):
                dropped(q) if dropped is not F.alpha_dropout else dropped(q, training=True)
    torch.reproducible("machine")
    with pytest.raises(RuntimeError, match="on this device is not kept reproducible"):
        x @ x.T
    with pytest.raises(RuntimeError, match=r'exp cannot be kept by reproducible\("machine"\): it runs on a device'):
        x.exp()
    torch.reproducible("threads")
    torch.fft.fft(x)


def test_rows_are_multiplied_in_parts_where_the_library_refuses_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau._backends.cuda.arrays.array import form_of
    from flambeau._backends.cuda.linalg import fixed_order

    torch.manual_seed(0)
    x, w = torch.randn(300, 128).bfloat16().cuda(), torch.randn(128, 256).bfloat16().cuda()
    ran: list[int] = []

    def of_few(name: str, rows: int, inner: int, columns: int, right: Any, biased: bool) -> Any:
        if rows > 100:
            raise fixed_order.Refused("so many rows")
        ran.append(rows)
        dtype = x._array.dtype
        forms = form_of((rows, columns), dtype), form_of((rows, inner), dtype), w._array.form
        return fixed_order._in_order(*forms, False, biased)

    with torch.reproducible("batch"):
        monkeypatch.setattr(fixed_order, "_is_kept", lambda *given: False)
        wanted = x @ w
    with torch.reproducible("batch"):
        monkeypatch.setattr(fixed_order, "_is_kept", lambda *given: True)
        monkeypatch.setattr(fixed_order, "_by_library", of_few)
        assert torch.equal(x @ w, wanted)
        row = torch.randn(256).bfloat16().cuda()
        added = torch.nn.functional.linear(x, w.t(), row)
        exact = (x.float() @ w.float() + row.float()).bfloat16()
    assert torch.equal(added, exact)
    assert ran == [75] * 8


def test_compiled_functions_heed_the_level() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.GELU(), torch.nn.LayerNorm(20)).cuda()
    x = torch.randn(9, 12).cuda()
    compiled = torch.compile(layer)
    for _ in range(3):
        compiled(x)  # recorded without a level
    with torch.reproducible("batch"), torch.no_grad():
        wanted = layer(x)
        for _ in range(3):
            assert torch.equal(compiled(x), wanted)
            assert torch.equal(compiled(x[SAMPLES].clone()), wanted[SAMPLES])
