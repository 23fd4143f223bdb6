"""Inference, and the calls around networks: images, spectra, matrices, indices, compiled and traced networks."""

from __future__ import annotations

from typing import Any

from .registry import program


@program("inference")
def network_without_gradients(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.Dropout(0.5), nn.Linear(20, 3)).to(device).eval()
    with torch.inference_mode():
        found = net(torch.randn(5, 10).to(device))
    return found, found.requires_grad, found.is_inference()


@program("inference")
def tokens_one_by_one_with_a_cache(torch: Any, device: str) -> Any:
    F, width, heads = torch.nn.functional, 32, 4
    table = torch.randn(50, width).to(device)
    weights = [(torch.randn(width, width) / 5).to(device) for _ in range(3)]
    keys = values = torch.empty(1, heads, 0, width // heads, device=device)
    token, tokens, scores = torch.tensor([3], device=device), [], []
    for _ in range(8):
        x = table[token]
        q, k, v = ((x @ w).reshape(1, 1, heads, -1).transpose(1, 2) for w in weights)
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        found = F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(1, width)
        logits = F.normalize(found, dim=-1) @ table.T
        token = logits.argmax(-1)
        tokens.append(token.item())
        scores.append(logits.amax())
    return tokens, scores


@program("inference")
def beams(torch: Any, device: str) -> Any:
    steps = torch.randn(5, 12, 12).to(device).log_softmax(-1)
    scores, ends, history = torch.zeros(1, device=device), torch.zeros(1, dtype=torch.long, device=device), []
    for each in steps:
        total = (scores[:, None] + each[ends]).flatten()
        scores, places = total.topk(3)
        ends = places % 12
        history.append((places // 12, ends))
    return scores, history


@program("inference")
def attention_with_masks(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    q, k, v = (torch.randn(2, 4, 12, 16).to(device) for _ in range(3))
    mask = torch.ones(12, 12, device=device).tril().bool()
    results = [
        F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, mask),
        F.scaled_dot_product_attention(q, k, v, mask.float() * 0.3, scale=0.2),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    ]  # fmt: skip
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        results.append(F.scaled_dot_product_attention(q, k, v))
    return results


@program("inference")
def multihead_attention(torch: Any, device: str) -> Any:
    layer = torch.nn.MultiheadAttention(24, 3, batch_first=True).to(device).eval()
    x, y = torch.randn(2, 5, 24).to(device), torch.randn(2, 7, 24).to(device)
    padding = (torch.arange(7)[None] > torch.tensor([[4], [6]])).to(device)
    return layer(x, y, y, key_padding_mask=padding), layer(x, x, x, need_weights=False)[0]


@program("inference")
def images_with_channels_last(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 1)
    )
    net = net.to(device).to(memory_format=torch.channels_last).eval()
    images = torch.randn(2, 4, 10, 10).to(device).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        found = net(images)
    last = found.is_contiguous(memory_format=torch.channels_last)
    return found, last, net[0].weight.is_contiguous(memory_format=torch.channels_last), found.stride()


@program("inference")
def network_in_half_precision(torch: Any, device: str) -> Any:
    nn = torch.nn
    results = []
    for dtype in (torch.float16, torch.bfloat16):
        torch.manual_seed(2)
        net = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 16)).to(device, dtype).eval()
        with torch.no_grad():
            results.append(net(torch.randn(9, 32).to(device, dtype)))
    return results


@program("inference")
def compiled_network(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4)).to(device)
    compiled = torch.compile(net, backend="eager")
    results = []
    for _ in range(3):
        found = compiled(torch.randn(6, 12).to(device))
        found.square().sum().backward()
        results.append(found.detach())
    return results, [each.grad for each in net.parameters()]


@program("inference")
def traced_and_scripted_networks(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Sigmoid()).to(device)
    x = torch.randn(3, 6).to(device)
    return torch.jit.trace(net, x)(x * 2), torch.jit.script(net)(x), torch.fx.symbolic_trace(net)(x)


@program("inference")
def parametrized_layers(torch: Any, device: str) -> Any:
    nn = torch.nn
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)).to(device)
    square = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)).to(device)
    x = torch.randn(3, 5).to(device)
    found = square(normed(x))
    found.sum().backward()
    return normed(x), square.weight @ square.weight.T, normed.parametrizations.weight.original1.grad is not None


@program("inference")
def resized_and_sampled_images(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    images = torch.rand(2, 3, 9, 11).to(device).requires_grad_()
    theta = torch.tensor([[[0.9, 0.2, 0.1], [-0.1, 1.1, 0.0]]]).expand(2, 2, 3).to(device)
    results = [
        F.interpolate(images, scale_factor=2, mode="bilinear", align_corners=False),
        F.interpolate(images, size=(5, 6), mode="bicubic", antialias=True), F.interpolate(images, (4, 4), mode="area"),
        F.grid_sample(images, F.affine_grid(theta, (2, 3, 6, 6), align_corners=False), align_corners=False),
        F.pad(images, (1, 2, 2, 1), mode="reflect"), F.pixel_unshuffle(images[..., :8, :8], 2), F.unfold(images, 3),
    ]  # fmt: skip
    sum(each.square().sum() for each in results).backward()
    return results, images.grad


@program("inference")
def spectra(torch: Any, device: str) -> Any:
    fft = torch.fft
    x = torch.randn(4, 60).to(device).requires_grad_()
    window = torch.hann_window(16).to(device)
    spectrum = torch.stft(x, 16, 4, window=window, return_complex=True)
    back = torch.istft(spectrum, 16, 4, window=window)
    found = [fft.rfft(x).abs(), fft.irfft(fft.rfft(x)), fft.fft2(x).real, fft.fftshift(fft.fft(x)).imag, back]
    sum(each.square().sum() for each in found).backward()
    return found, x.grad


@program("inference")
def matrices(torch: Any, device: str) -> Any:
    linalg = torch.linalg
    a = torch.randn(3, 6, 6, dtype=torch.float64).to(device).requires_grad_()
    b = torch.randn(3, 6, 2, dtype=torch.float64).to(device)
    positive = a @ a.mT + 6 * torch.eye(6, dtype=torch.float64, device=device)
    found = [
        linalg.solve(positive, b), linalg.cholesky(positive), linalg.inv(positive), linalg.det(positive).log(),
        linalg.svdvals(a), linalg.eigvalsh(positive), linalg.matrix_norm(a), linalg.qr(a)[1].abs(), linalg.pinv(a),
        linalg.lstsq(positive, b).solution, linalg.matrix_exp(a / 10), linalg.slogdet(positive)[1],
    ]  # fmt: skip
    sum(each.sum() for each in found[:6]).backward()
    return found, a.grad


@program("inference")
def complex_numbers(torch: Any, device: str) -> Any:
    z = torch.complex(torch.randn(5, 5), torch.randn(5, 5)).to(device).requires_grad_()
    found = (z @ z.conj().T).abs() + z.angle() + torch.view_as_real(z * 1j).sum(-1) + z.exp().imag
    found.sum().backward()
    return found, z.grad, torch.polar(torch.ones(3, device=device), torch.arange(3.0, device=device))


@program("inference")
def integers_sorted_and_counted(torch: Any, device: str) -> Any:
    x = (torch.arange(60) * 37 % 23).to(device)
    values, places = x.sort(stable=True)
    return [
        values, places, *x.unique(return_counts=True, return_inverse=True), x.bincount(minlength=30), x.cumsum(0),
        torch.histc(x.float(), 5), torch.searchsorted(values, torch.tensor([3, 7], device=device)),
        (x // 15).mode().values, x & 6, x << 2, ~x, x // 5, x % 7, x.median(), x.kthvalue(9).values,
        torch.isin(x, x[:4]), x.argsort(stable=True), torch.bucketize(x, torch.tensor([5, 10, 15], device=device)),
        x.to(torch.uint8).sum(), x.float().quantile(0.3),
    ]  # fmt: skip


@program("inference")
def indices_and_masks(torch: Any, device: str) -> Any:
    x = torch.randn(6, 7).to(device).requires_grad_()
    rows, columns = torch.tensor([0, 5, 0, 2]).to(device), torch.tensor([1, 1, 1, 6]).to(device)
    mask = x.detach() > 0
    put = x.clone().index_put((rows, columns), torch.ones(4, device=device), accumulate=True)
    spread = x.index_add(0, rows, torch.ones(4, 7, device=device)).scatter_add(1, columns.reshape(4, 1), x[:4, :1])
    found = [x[mask].sum(), x[rows, columns], x.masked_fill(mask, 0.5), put, spread, x.take_along_dim(columns[None], 1)]
    sum(each.square().sum() for each in found).backward()
    changed = x.detach().clone()
    changed[mask] *= -1
    changed[1:4, ::2] = 7
    return found, x.grad, mask.nonzero(), torch.where(mask), changed, torch.roll(changed, 2, 1), changed.flip(0)


@program("inference")
def sums_by_einsum(torch: Any, device: str) -> Any:
    a, b, c = (torch.randn(shape).to(device).requires_grad_() for shape in ((3, 4, 5), (3, 5, 6), (6, 4)))
    found = [
        torch.einsum("bij,bjk->bik", a, b),
        torch.einsum("bij,bjk,ki->b", a, b, c),
        torch.einsum("bii->b", a[:, :3, :3]),
    ]
    found += [
        torch.tensordot(a, b, ([0, 2], [0, 1])),
        torch.baddbmm(torch.ones(1, device=device), a, b),
        a.flatten(1) @ c.new_ones(20),
    ]
    sum(each.square().sum() for each in found).backward()
    return found, a.grad, b.grad, c.grad


@program("inference")
def distributions(torch: Any, device: str) -> Any:
    D = torch.distributions
    mean, scale = torch.randn(5).to(device).requires_grad_(), torch.rand(5).to(device) + 0.5
    normal, other = D.Normal(mean, scale), D.Normal(torch.zeros(5, device=device), torch.ones(5, device=device))
    loss = (
        normal.log_prob(torch.ones(5, device=device)).sum()
        + D.kl_divergence(normal, other).sum()
        + normal.entropy().sum()
    )
    loss.backward()
    categories = D.Categorical(logits=mean.detach())
    return loss, mean.grad, categories.probs, normal.rsample((3,)).shape, categories.sample().shape


@program("inference")
def nested_sequences(torch: Any, device: str) -> Any:
    parts = [torch.randn(length, 4).to(device) for length in (2, 5, 3)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    return list((nested * 2).unbind()), nested.offsets(), torch.nested.to_padded_tensor(nested, 0.0)
