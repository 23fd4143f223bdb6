"""Small programs over the main parts of the API, each a function of the package that returns lists of numbers.

They need no PyTorch: where it is not, as in the browser, their results are compared with ones computed elsewhere.
`python -m tests.support.small_programs` does that with PyTorch's in `small_programs.json`; `--write` writes them anew.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).with_suffix(".json")


def _numbers(T: Any, *shape: int) -> Any:
    count = 1
    for each in shape:
        count *= each
    return ((T.arange(count, dtype=T.float32) * 37 % 101 - 50) / 50).reshape(shape)


def readme(T: Any) -> Any:
    T.manual_seed(0)
    w = T.randn(3, requires_grad=True)
    loss = ((w * T.tensor([1.0, 2.0, 3.0])).sum() - 1) ** 2
    loss.backward()
    return [loss.tolist(), w.grad.tolist(), w.tolist()]


def training(T: Any) -> Any:
    T.manual_seed(1)
    model = T.nn.Sequential(
        T.nn.Conv2d(1, 4, 3, padding=1), T.nn.BatchNorm2d(4), T.nn.ReLU(), T.nn.MaxPool2d(2), T.nn.Flatten(),
        T.nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = T.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    losses = []
    for step in range(5):
        images = _numbers(T, 6, 1, 8, 8) * (step + 1) / 5
        loss = T.nn.functional.cross_entropy(model(images), T.arange(6) % 10)
        optimizer.zero_grad()
        loss.backward()
        T.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def recurrent_and_attention(T: Any) -> Any:
    T.manual_seed(2)
    lstm = T.nn.LSTM(5, 7, batch_first=True)
    layer = T.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = _numbers(T, 2, 3, 5).requires_grad_()
    out, (hidden, _) = lstm(x)
    (out.sum() + hidden.square().sum()).backward()
    encoded = layer(_numbers(T, 2, 4, 8))
    mask = T.nn.functional.scaled_dot_product_attention(*[_numbers(T, 1, 2, 4, 8)] * 3, is_causal=True)
    return [out.tolist(), x.grad.tolist(), encoded.tolist(), mask.flatten().tolist()]


def optimizers(T: Any) -> Any:
    results = []
    for name in ("SGD", "Adam", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "Rprop"):
        weight = T.nn.Parameter(_numbers(T, 4, 3))
        optimizer = getattr(T.optim, name)([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (weight.square().sum() + weight.sum().sin()).backward()
            optimizer.step()
        results.append(weight.tolist())
    return results


def transforms(T: Any) -> Any:
    x = _numbers(T, 3)
    hessian = T.func.hessian(lambda v: (v**3).sum() + v.prod())(x)
    per_sample = T.func.vmap(T.func.grad(lambda v: (v * v).sum().sin()))(_numbers(T, 4, 3))
    _, tangent = T.func.jvp(T.exp, (x,), (T.ones(3),))
    return [hessian.tolist(), per_sample.tolist(), tangent.tolist()]


def linear_algebra(T: Any) -> Any:
    matrix = _numbers(T, 4, 4) + 3 * T.eye(4)
    spectrum = T.fft.rfft(_numbers(T, 16))
    singular = T.linalg.svdvals(matrix)
    return [T.linalg.solve(matrix, T.ones(4)).tolist(), T.linalg.det(matrix).item(), singular.tolist(),
            spectrum.real.tolist(), T.einsum("ij,kj->ik", matrix, matrix).tolist()]  # fmt: skip


def large_tensors(T: Any) -> Any:
    x = _numbers(T, 200, 50)
    y = T.nn.functional.gelu(x) * T.sigmoid(x) + x.sin()
    return [y.sum(0).tolist(), T.softmax(y, 1)[::50].tolist(), T.nn.functional.layer_norm(y, (50,))[7].tolist(),
            y.argsort(1)[3].tolist(), y.cumsum(1)[:, -1][:8].tolist(), (y.T @ y)[:2].tolist()]  # fmt: skip


def bfloat16(T: Any) -> Any:
    T.manual_seed(3)
    layer = T.nn.Linear(6, 4, dtype=T.bfloat16)
    x = _numbers(T, 5, 6).to(T.bfloat16).requires_grad_()
    loss = T.nn.functional.layer_norm(layer(x).relu(), (4,)).square().mean()
    loss.backward()
    optimizer = T.optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)
    optimizer.step()
    with T.autocast("cpu", dtype=T.bfloat16):
        product = _numbers(T, 3, 3) @ _numbers(T, 3, 3)
    drawn = T.empty(20, dtype=T.bfloat16).uniform_()
    x.data[0, :2] = 7
    shown = str(x.detach()[0, :3])
    return [loss.item(), x.grad.tolist(), layer.weight.tolist(), str(product.dtype), product.tolist(), drawn.tolist(),
            shown, T.finfo(T.bfloat16).max, T.cat([x, x]).shape[0], (x > 0).sum().item()]  # fmt: skip


def float8(T: Any) -> Any:
    x = T.tensor([0.3, -1.7, 500.0, 1e-3, 0.0])
    names = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    return [x.to(getattr(T, name)).to(T.float32).nan_to_num(7.0).clamp(-1e30, 1e30).tolist() for name in names]


def compiled(T: Any) -> Any:
    def step(x: Any, w: Any) -> Any:
        return T.nn.functional.relu(x @ w).sum(1).tanh()

    # PyTorch's own compiler is not what is tested.
    run = T.compile(step) if T.__name__ == "flambeau" else step
    return [run(_numbers(T, 4, 3) + number, _numbers(T, 3, 5)).tolist() for number in range(4)]


def saved(T: Any) -> Any:
    T.manual_seed(4)
    model = T.nn.Linear(3, 2)
    buffer = io.BytesIO()
    T.save({"model": model.state_dict(), "half": T.ones(3, dtype=T.bfloat16)}, buffer)
    buffer.seek(0)
    state = T.load(buffer, weights_only=True)
    return [state["model"]["weight"].tolist(), state["half"].tolist(), str(state["half"].dtype)]


def data(T: Any) -> Any:
    T.manual_seed(5)
    dataset = T.utils.data.TensorDataset(T.arange(10.0), T.arange(10))
    loader = T.utils.data.DataLoader(dataset, batch_size=4, shuffle=True)
    return [[values.tolist(), labels.tolist()] for values, labels in loader]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "readme": readme, "training": training, "recurrent and attention": recurrent_and_attention,
    "optimizers": optimizers, "transforms": transforms, "linear algebra": linear_algebra, "large": large_tensors,
    "bfloat16": bfloat16, "float8": float8, "compiled": compiled, "saved bfloat16": saved, "data": data,
}  # fmt: skip


def close(found: Any, expected: Any, places: float) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(close(*each, places) for each in zip(found, expected, strict=True))
    if isinstance(expected, float):
        return abs(found - expected) <= places * (1 + abs(expected)) or (found != found and expected != expected)
    return bool(found == expected)


def results(T: Any) -> dict[str, Any]:
    return {name: json.loads(json.dumps(program(T))) for name, program in PROGRAMS.items()}


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The programs whose results differ, with both."""
    assert found.keys() == wanted.keys()
    return {
        name: (found[name], expected)
        for name, expected in wanted.items()
        if not close(found[name], expected, 1e-2 if "bfloat16" in name else 1e-5)
    }


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        EXPECTED.write_text(json.dumps(results(importlib.import_module("torch"))) + "\n", encoding="utf-8")
        return
    differ = differences(results(importlib.import_module("flambeau")), json.loads(EXPECTED.read_text(encoding="utf-8")))
    assert not differ, differ
    print(f"{len(PROGRAMS)} programs agree with PyTorch")


if __name__ == "__main__":
    main()
