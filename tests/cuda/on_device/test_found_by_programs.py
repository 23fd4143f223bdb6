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
