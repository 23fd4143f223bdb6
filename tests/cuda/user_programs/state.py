"""Random numbers, checkpoints, determinism, devices and errors."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

from .registry import program, refusal


@program("random numbers", cuda=True)
def numbers_of_a_seed(torch: Any, device: str) -> Any:
    torch.cuda.manual_seed(42)
    drawn = [torch.rand(5, device=device), torch.randn(6, device=device), torch.randint(0, 100, (4,), device=device)]
    drawn += [torch.empty(5, device=device).exponential_(), torch.bernoulli(torch.full((20,), 0.3, device=device))]
    drawn += [torch.empty(4, device=device).uniform_(-1, 1), torch.empty(4, device=device).normal_(2, 3)]
    drawn += [torch.randn(3, 1000, device=device)[:, :3], torch.rand(5, dtype=torch.float64, device=device)]
    return drawn, torch.cuda.initial_seed()


@program("random numbers", cuda=True)
def permutation_and_choice(torch: Any, device: str) -> Any:
    torch.manual_seed(3)
    first = torch.randperm(50, device=device)
    chosen = torch.multinomial(torch.arange(1.0, 6, device=device), 4)
    return first.sort().values, chosen.sort().values.unique().numel(), first.dtype


@program("random numbers", cuda=True)
def generator_of_its_own(torch: Any, device: str) -> Any:
    generator = torch.Generator(device).manual_seed(7)
    a = torch.randn(5, device=device, generator=generator)
    state = generator.get_state()
    b = torch.rand(5, device=device, generator=generator)
    generator.set_state(state)
    c = torch.rand(5, device=device, generator=generator)
    return a, b, torch.equal(b, c), generator.initial_seed(), generator.device.type


@program("random numbers", cuda=True)
def state_kept_and_put_back(torch: Any, device: str) -> Any:
    torch.cuda.manual_seed_all(11)
    state = torch.cuda.get_rng_state()
    a = torch.rand(4, device=device)
    torch.cuda.set_rng_state(state)
    b = torch.rand(4, device=device)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(100, device=device)
    c = torch.rand(4, device=device)
    torch.cuda.set_rng_state_all([state])
    torch.rand(4, device=device)
    return torch.equal(a, b), torch.equal(torch.rand(4, device=device), c), a, c, state.dtype, state.numel()


@program("random numbers", cuda=True)
def dropout_of_a_seed(torch: Any, device: str) -> Any:
    x = torch.ones(1000, device=device, requires_grad=True)
    torch.manual_seed(9)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    torch.manual_seed(9)
    again = torch.nn.functional.dropout(x, 0.25)
    return torch.equal(y, again), torch.equal(x.grad, y.detach()), y.unique(), y.detach()[:40]


@program("checkpoints")
def checkpoint_across_devices(torch: Any, device: str) -> Any:
    def trained(state: Any) -> Any:
        torch.manual_seed(1)
        net = torch.nn.Linear(4, 2).to(device)
        optimizer = torch.optim.Adam(net.parameters(), 0.1)
        if state is not None:
            net.load_state_dict(state["net"])
            optimizer.load_state_dict(state["optimizer"])
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(3, 4, device=device)).square().sum().backward()
            optimizer.step()
        return {"net": net.state_dict(), "optimizer": optimizer.state_dict()}

    file = io.BytesIO()
    torch.save(trained(None), file)
    file.seek(0)
    on_host = torch.load(file, map_location="cpu")
    devices = {each.device.type for each in on_host["net"].values()}
    file.seek(0)
    there = torch.load(file, map_location=torch.device(device), weights_only=True)
    found = trained(on_host)["net"]
    return sorted(devices), {each.device.type for each in there["net"].values()} == {device}, found["weight"]


@program("checkpoints")
def copied_and_pickled(torch: Any, device: str) -> Any:
    x = torch.arange(6.0).reshape(2, 3).to(device).requires_grad_()
    twin, read = copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    return twin, read, read.device.type == device, read.requires_grad, twin.data_ptr() != x.data_ptr()


@program("checkpoints", cuda=True)
def places_of_storages(torch: Any, device: str) -> Any:
    file = io.BytesIO()
    torch.save([torch.ones(2, device=device), torch.zeros(2)], file)
    seen = []

    def place(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    file.seek(0)
    torch.load(file, map_location=place)
    file.seek(0)
    mapped = torch.load(file, map_location={"cuda:0": "cpu"})
    return sorted(seen), [str(each.device) for each in mapped]


@program("determinism")
def same_bits_each_time(torch: Any, device: str) -> Any:
    x, w = torch.randn(4, 8, 12, 12).to(device), torch.randn(8, 8, 3, 3).to(device).requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        seen = []
        for _ in range(3):
            (grad,) = torch.autograd.grad(torch.nn.functional.conv2d(x, w).square().sum(), w)
            added = torch.zeros(5, device=device).index_add(0, torch.arange(500, device=device) % 5, x.flatten()[:500])
            seen.append((grad, added))
        return [torch.equal(a, b) for each in seen for a, b in zip(each, seen[0], strict=True)], seen[0]
    finally:
        torch.use_deterministic_algorithms(False)


@program("determinism", cuda=True)
def what_is_not_deterministic(torch: Any, device: str) -> Any:
    places = torch.tensor([0, 1, 0]).to(device)
    torch.use_deterministic_algorithms(True)
    try:
        found = refusal(
            lambda: torch.zeros(3, device=device).put_(places, torch.arange(3.0, device=device)),
            "does not have a deterministic implementation",
            "put_",
        )
        unwritten = torch.empty(3, device=device)
        return found, torch.are_deterministic_algorithms_enabled(), unwritten
    finally:
        torch.use_deterministic_algorithms(False)


@program("determinism", cuda=True)
def volumes_have_the_same_bits(torch: Any, device: str) -> Any:
    x, w = torch.randn(2, 6, 7, 8, 6).to(device), torch.randn(6, 5, 3, 3, 3).to(device)
    with torch.backends.cudnn.flags(deterministic=True, allow_tf32=False):
        results = [torch.nn.functional.conv_transpose3d(x, w, stride=2, padding=1) for _ in range(30)]
    return all(torch.equal(each, results[0]) for each in results), results[0]


@program("errors", cuda=True)
def operands_on_two_devices(torch: Any, device: str) -> Any:
    here, there = torch.ones(3, 3), torch.ones(3, 3, device=device)
    calls = [
        lambda: here + there,
        lambda: here @ there,
        lambda: torch.nn.Linear(3, 3)(there),
        lambda: torch.cat([here, there]),
    ]
    calls += [
        lambda: there.index_select(0, torch.tensor([0])),
        lambda: torch.nn.functional.cross_entropy(there, torch.zeros(3).long()),
    ]
    return (
        [refusal(each, "same device", "cpu", "cuda:0") for each in calls],
        here + torch.tensor(1.0, device="cpu"),
        (there + torch.tensor(1.0)),
    )


@program("errors", cuda=True)
def calls_that_no_device_takes(torch: Any, device: str) -> Any:
    x = torch.ones(3, 4, device=device)
    count = torch.cuda.device_count()
    return [
        refusal(lambda: x @ x, "shapes cannot be multiplied", "3x4"), refusal(lambda: x.numpy(), "cuda:0", "cpu()"),
        refusal(lambda: x.to(f"cuda:{count}"), "invalid device ordinal"),
        refusal(lambda: x + x[:2], "must match", "dimension 0"),
        refusal(lambda: x.view(5), "shape '[5]' is invalid", "12"),
        refusal(lambda: torch.zeros(2, device="cude"), "cude"),
        refusal(lambda: x[5], "out of bounds", "5"), refusal(lambda: x.sum(4), "Dimension out of range", "4"),
        refusal(lambda: x.gather(0, torch.ones(2, 4, device=device)), "int64", "index"),
        refusal(lambda: torch.cuda.set_device(count), "invalid device ordinal"),
        refusal(lambda: torch.randn(2, device=device, generator=torch.Generator()), "cuda", "generator", "cpu"),
        refusal(lambda: torch.nn.functional.conv2d(x[None, None], x[None, None], groups=3), "groups", "divisible"),
    ]  # fmt: skip


@program("errors", cuda=True)
def wrong_gradients(torch: Any, device: str) -> Any:
    x = torch.ones(3, device=device, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    changed = x * 2
    square = changed.square()
    changed += 1
    return [
        refusal(lambda: y.backward(), "second time", "freed"), refusal(lambda: x.add_(1), "leaf Variable", "in-place"),
        refusal(lambda: square.sum().backward(), "modified by an inplace operation", "FloatTensor"),
        refusal(lambda: (x * 2).backward(), "scalar outputs"),
        refusal(lambda: x.detach().sum().backward(), "require grad"),
        refusal(lambda: x.half() @ x.float(), "same dtype"),
    ]  # fmt: skip


@program("errors", cuda=True)
def decompositions_that_fail(torch: Any, device: str) -> Any:
    bad = -torch.eye(3, device=device)
    return [
        refusal(lambda: torch.linalg.cholesky(bad), "not positive-definite", "leading minor"),
        refusal(lambda: torch.linalg.inv(torch.zeros(3, 3, device=device)), "singular"),
        refusal(lambda: torch.linalg.solve(torch.zeros(2, 2, device=device), torch.ones(2, device=device)), "singular"),
        torch.linalg.cholesky_ex(bad).info, torch.ones(2, device=device) + 1,
    ]  # fmt: skip


@program("devices", cuda=True)
def questions_about_the_device(torch: Any, device: str) -> Any:
    cuda, found = torch.cuda, torch.cuda.get_device_properties(0)
    named = [hasattr(found, each) for each in ["name", "major", "minor", "total_memory", "multi_processor_count"]]
    x = torch.ones(2, device=device)
    with cuda.device(0):
        y = torch.ones(2, device=device)
    return [
        cuda.is_available(), cuda.device_count() >= 1, cuda.current_device(), str(x.device), x.is_cuda, x.get_device(),
        y.device == x.device, named, x.type(), str(torch.device("cuda")), torch.tensor(1, device=0).device.type,
        cuda.get_device_capability() == (found.major, found.minor), torch.empty(1).cuda().is_cuda, x.cpu().is_cuda,
        cuda.is_initialized(), cuda.is_bf16_supported(), repr(x), torch.zeros_like(x).device.type,
        x.new_ones(1).is_cuda,
    ]  # fmt: skip


@program("devices", cuda=True)
def default_device_and_accelerator(torch: Any, device: str) -> Any:
    with torch.device(device):
        x, net = torch.ones(3), torch.nn.Linear(2, 2)
    torch.set_default_device(device)
    try:
        y = torch.arange(4)
    finally:
        torch.set_default_device(None)
    accelerator = torch.accelerator
    return [
        x.device.type, net.weight.device.type, y.device.type, torch.ones(1).device.type, accelerator.is_available(),
        str(accelerator.current_accelerator()), accelerator.current_device_index(), accelerator.device_count() >= 1,
    ]  # fmt: skip


@program("devices", cuda=True)
def profiled_calls(torch: Any, device: str) -> Any:
    x = torch.randn(64, 64).to(device)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        (x @ x).relu().sum()
    names = {each.key for each in seen.key_averages()}
    return [each in names for each in ("aten::mm", "aten::relu", "aten::sum")]
