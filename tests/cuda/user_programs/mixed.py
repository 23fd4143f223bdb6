"""Mixed precision: autocast, GradScaler, TF32 and 8-bit floats."""

from __future__ import annotations

from typing import Any

from .registry import program


def _trained(torch: Any, device: str, dtype: Any, scaler: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8)).to(device)
    optimizer, losses = torch.optim.SGD(net.parameters(), 0.05), []
    given, wanted = torch.randn(16, 32).to(device), torch.randn(16, 8).to(device)
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype):
            found = net(given)
            loss = nn.functional.mse_loss(found.float(), wanted)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return losses, found.dtype, net[0].weight, scaler.get_scale()


@program("mixed precision", accuracy="float16", cuda=True)
def autocast_with_a_scaler(torch: Any, device: str) -> Any:
    return _trained(torch, device, torch.float16, torch.amp.GradScaler(device, init_scale=1024.0))


@program("mixed precision", accuracy="bfloat16")
def autocast_in_bfloat16(torch: Any, device: str) -> Any:
    return _trained(torch, device, torch.bfloat16, torch.amp.GradScaler(device, enabled=False))


@program("mixed precision", cuda=True)
def scaler_that_skips_a_step(torch: Any, device: str) -> Any:
    weight = torch.ones(4, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    scaler, seen = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2), []
    for factor in (1.0, float("inf"), 2.0, 3.0, float("nan")):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen += [scaler.get_scale(), weight.detach().clone()]
    return seen, sorted(scaler.state_dict())


@program("mixed precision", accuracy="float16", cuda=True)
def dtypes_under_autocast(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    x, w = torch.randn(6, 6).to(device), torch.randn(6, 6).to(device)
    with torch.autocast(device, dtype=torch.float16):
        found = [
            x @ w, F.linear(x, w), F.softmax(x @ w, -1), F.layer_norm(x @ w, (6,)), (x @ w).sum(), (x @ w).exp(),
            torch.cat([x @ w, x]), (x @ w) + x, F.gelu(x @ w), torch.bmm(x[None], w[None]), F.mse_loss(x @ w, w),
            (x @ w).norm(), (x @ w).pow(2), F.relu(x @ w), torch.einsum("ij,jk->ik", x, w), torch.addmm(x, x, w),
        ]  # fmt: skip
        with torch.autocast(device, enabled=False):
            found.append(x @ w)
    return [(each.dtype, each) for each in found], torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)


@program("mixed precision", accuracy="float16", cuda=True)
def own_function_under_autocast(torch: Any, device: str) -> Any:
    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)  # type: ignore[untyped-decorator]
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            return grad @ b.T, a.T @ grad

    a, b = (torch.randn(5, 5).to(device).requires_grad_() for _ in range(2))
    with torch.autocast(device, dtype=torch.float16):
        found = Product.apply(a @ b, b)
    found.sum().backward()
    return found, found.dtype, a.grad, b.grad


@program("mixed precision", cuda=True, gpu=True)
def switches_of_tf32(torch: Any, device: str) -> Any:
    """How far products are from float64's, by the switch; PyTorch and Flambeau must be in the same class."""
    torch.manual_seed(0)
    a, b = torch.randn(512, 512).to(device), torch.randn(512, 512).to(device)
    images, kernel = torch.randn(4, 32, 24, 24).to(device), torch.randn(32, 32, 3, 3).to(device)
    F, seen = torch.nn.functional, []
    exact, clean = a.double() @ b.double(), F.conv2d(images.double(), kernel.double())
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        for allowed in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
            seen += [torch.get_float32_matmul_precision(), _narrow((a @ b - exact).abs().max())]
            seen.append(_narrow((F.conv2d(images, kernel) - clean).abs().max()))
        for word in ("highest", "high", "medium"):
            torch.set_float32_matmul_precision(word)
            seen += [torch.backends.cuda.matmul.allow_tf32, _narrow((a @ b - exact).abs().max())]
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
    return seen


def _narrow(error: Any) -> str:
    """The class of an error: that of float32, or of products in ten bits."""
    return "float32" if error.item() < 1e-3 else "tf32" if error.item() < 1.0 else "wrong"


@program("mixed precision", accuracy="bfloat16", cuda=True)
def products_of_8_bit_floats(torch: Any, device: str) -> Any:
    a, b = torch.randn(32, 64).to(device), torch.randn(48, 64).to(device)
    scales = [each.abs().max() / 448 for each in (a, b)]
    first, second = ((each / scale).to(torch.float8_e4m3fn) for each, scale in zip((a, b), scales, strict=True))
    found = torch._scaled_mm(first, second.t(), scales[0], scales[1], out_dtype=torch.bfloat16)
    rows = a.abs().amax(1, keepdim=True) / 448, b.abs().amax(1, keepdim=True) / 448
    by_row = torch._scaled_mm(
        (a / rows[0]).to(torch.float8_e4m3fn), (b / rows[1]).to(torch.float8_e4m3fn).t(), rows[0], rows[1].t(),
        out_dtype=torch.bfloat16,
    )  # fmt: skip
    return found, by_row, first.float(), first.to(torch.float8_e5m2).float()


@program("mixed precision")
def narrow_numbers(torch: Any, device: str) -> Any:
    x = torch.linspace(-300, 300, 101).to(device)
    kinds = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bfloat16", "float16"]
    return [x.to(getattr(torch, each)).float() for each in kinds]


@program("mixed precision", accuracy="float16", cuda=True)
def images_with_autocast_and_channels_last(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.Flatten()
    )
    net = net.to(device, memory_format=torch.channels_last)
    images = torch.randn(4, 8, 8, 8).to(device, memory_format=torch.channels_last)
    with torch.autocast(device, dtype=torch.float16):
        found = net(images)
    found.float().square().mean().backward()
    return found, found.dtype, [each.grad for each in net.parameters()]
