"""What whole programs met on a device that no op of the database shows."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import flambeau as torch
from flambeau._core.process.host_calls import HOST_OPS

F = torch.nn.functional


def test_more_memory_than_any_device_has_is_an_out_of_memory_error() -> None:
    for shape in ((1 << 50,), (1 << 30, 1 << 22)):
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate"):
            torch.empty(shape, device="cuda")
    assert (torch.ones(2, device="cuda") + 1).tolist() == [2, 2]


def test_a_pickled_tensor_comes_back_to_its_device() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)[:, 1:].requires_grad_()
    read = pickle.loads(pickle.dumps(x))
    assert str(read.device) == "cuda:0"
    assert read.requires_grad
    assert read.tolist() == x.tolist()


def _differentiated(place: str, call: Any, *given: Any) -> list[Any]:
    leaves = [each.detach().to(place).requires_grad_() for each in given]
    result = call(*leaves)
    (result * result.detach().cos()).sum().backward()
    return [result.detach().cpu(), *[each.grad.cpu() for each in leaves]]


def _same_on_both(call: Any, *given: Any) -> None:
    before = HOST_OPS.total()
    for ours, theirs in zip(_differentiated("cuda", call, *given), _differentiated("cpu", call, *given), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert HOST_OPS.total() == before


@pytest.mark.parametrize("sizes", [(2, 3, 5, 6), (2, 1, 3, 4, 5)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grids_of_affine_maps(sizes: tuple[int, ...], align_corners: bool) -> None:
    torch.manual_seed(0)
    theta = torch.randn(2, len(sizes) - 2, len(sizes) - 1)
    _same_on_both(lambda each: F.affine_grid(each, list(sizes), align_corners=align_corners), theta)


def test_sequences_are_packed_and_padded_by_the_device() -> None:
    rnn = torch.nn.utils.rnn
    torch.manual_seed(1)

    def through(*sequences: Any) -> Any:
        packed = rnn.pack_sequence(list(sequences), enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, batch_first=True, padding_value=0.5, total_length=9)[0]

    _same_on_both(through, *[torch.randn(length, 60) for length in (3, 7, 5)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_long_rows_are_added_by_the_device(dtype: Any) -> None:
    """Rows of more than 128 elements, some of them twice, into contiguous and into transposed targets."""
    index = torch.tensor([2, 0, 2, 1])
    source = torch.arange(4 * 200).reshape(4, 200).to(dtype)
    found = []
    for place in ("cpu", "cuda"):
        rows = torch.zeros(3, 200, dtype=dtype, device=place).index_add_(0, index.to(place), source.to(place))
        columns = torch.zeros(3, 200, dtype=dtype, device=place).T.index_add_(1, index.to(place), source.to(place).T)
        found.append((rows.cpu(), columns.cpu()))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.complex64])
def test_values_are_added_at_positions_from_both_ends(dtype: Any) -> None:
    found = []
    for place in ("cpu", "cuda"):
        x = torch.zeros(4, 5, dtype=dtype, device=place)
        x.index_put_((torch.tensor([0, -1, 3, 0], device=place),), torch.ones(4, 5, device=place).to(dtype), True)
        x.T.index_put_((torch.tensor([-2, 1], device=place),), torch.ones(1, dtype=dtype, device=place), True)
        found.append(x.cpu())
    assert torch.equal(*found)


def test_gradients_of_chosen_slices_are_added_by_the_device() -> None:
    torch.manual_seed(2)
    places = torch.tensor([2, 0, 2])

    def chosen(x: Any) -> Any:
        here = places.to(x.device)
        return torch.cat([x.index_select(1, here).flatten(), x[here].flatten(), x[:, here].flatten()])

    _same_on_both(chosen, torch.randn(3, 4, 5))


def test_random_numbers_drawn_in_a_fork_change_none_after_it() -> None:
    torch.cuda.manual_seed(3)
    torch.rand(4, device="cuda")
    want = torch.rand(4, device="cuda")
    for devices in (None, [0]):
        torch.cuda.manual_seed(3)
        torch.rand(4, device="cuda")
        with torch.random.fork_rng(devices=devices):
            torch.rand(50, device="cuda")
        assert torch.equal(torch.rand(4, device="cuda"), want)


def test_new_tensors_in_pinned_memory() -> None:
    made = [
        torch.empty(3, pin_memory=True),
        torch.zeros(2, 2, pin_memory=True),
        torch.full((3,), 2.0, pin_memory=True),
        torch.tensor([1.0, 2.0], pin_memory=True),
        torch.rand(4, pin_memory=True),
        torch.randn(4, pin_memory=True, requires_grad=True),
    ]
    assert all(each.is_pinned() for each in made)
    assert made[-1].requires_grad
    assert made[-1].is_leaf
    assert made[2].tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.ones(2, device="cuda", pin_memory=True)


def test_a_singular_matrix_is_refused_in_the_words_of_the_cpu() -> None:
    for place in ("cpu", "cuda"):
        with pytest.raises(torch.linalg.LinAlgError, match=r"diagonal element 1 is zero.*singular"):
            torch.linalg.inv(torch.zeros(3, 3, device=place))


def test_deterministic_sums_have_the_same_bits() -> None:
    torch.manual_seed(0)
    index, values = torch.arange(3000, device="cuda") % 7, torch.randn(3000).cuda()
    torch.use_deterministic_algorithms(True)
    try:
        found = [torch.zeros(7, device="cuda").scatter_add(0, index, values) for _ in range(3)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    torch.testing.assert_close(found[0].cpu(), torch.zeros(7).scatter_add(0, index.cpu(), values.cpu()))


def test_the_limit_of_a_process_is_in_the_report() -> None:
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError, match="allowed"):
            torch.empty(torch.cuda.mem_get_info()[1] // 4, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_forked_process_is_told_to_spawn() -> None:
    torch.ones(1, device="cuda")
    context = torch.multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    worker = context.Process(target=_use_the_device, args=(told,))
    worker.start()
    assert "Cannot re-initialize CUDA in forked subprocess" in told.get()
    worker.join()
    assert not torch.cuda._is_in_bad_fork()


def _use_the_device(told: Any) -> None:
    try:
        torch.ones(1, device="cuda")
        told.put("nothing")
    except RuntimeError as error:
        told.put(str(error))
