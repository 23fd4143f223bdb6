"""Random permutations, number for number those of PyTorch on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.arrays.quick import name_of
from ..backend import FUNCTIONS
from ..generator import Generator
from .sampling import BAREBONES_UNSIGNED, legacy_name, not_implemented, rounded

if TYPE_CHECKING:
    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

SWAPPED_FORWARDS = (2**32 - 1) // 20
"""From here on PyTorch draws 64 bits for each swap, and swaps backwards."""
_FEW = 400
"""Below, the plain loop is the quickest."""
_FLOAT_LIMITS = {"float16": (2**11 + 1, "2049"), "float32": (2**24 + 1, "2^24+1"), "float64": (2**53 + 1, "2^53+1")}


def randperm(n: int, dtype: np.dtype[Any], generator: Generator) -> npt.NDArray[Any]:
    """A random order of 0, 1, ..., n - 1."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    check_dtype(n, dtype)
    if n >= SWAPPED_FORWARDS:
        remainders = generator.draw64(n) % np.arange(1, n + 1, dtype=np.uint64)
        return rounded(swap_backwards(remainders.astype(np.int64)), dtype)
    if n >= _FEW and (kernels := FUNCTIONS[np.ndarray]["random"]) is not None:
        return rounded(kernels.shuffle(generator.draw32(n - 1), n), dtype)
    partners = np.arange(n)
    if n > 1:
        choices = np.arange(n, 1, -1, dtype=np.uint32)
        partners[:-1] += np.remainder(generator.draw32(n - 1), choices, dtype=np.uint32)
    return rounded(_swap_one_by_one(partners) if n < _FEW else swap_forwards(partners), dtype)


def _swap_one_by_one(partners: Positions) -> Positions:
    content = list(range(len(partners)))
    for position, partner in enumerate(partners.tolist()):
        content[position], content[partner] = content[partner], content[position]
    return np.array(content, dtype=np.int64)


def swap_forwards(partners: Positions) -> Positions:
    """Swap positions k and partners[k] >= k of 0, 1, 2, ... for each k in turn, without a loop over k.

    What stands at position p before step k was put there by the last earlier step with partner p: that step moved its
    own position's content. So the content of position k at its own step follows from an earlier step's, and so on back
    to a position that nothing has touched. `origin` follows these chains by doubling.
    """
    n = len(partners)
    order = _order_by_partner(partners, n)
    grouped = partners[order]
    same = grouped[1:] == grouped[:-1]
    previous = np.full(n, -1, dtype=np.int64)  # the last earlier step with the same partner
    previous[order[1:][same]] = order[:-1][same]
    origin = np.arange(n)
    last_of_group = np.append(~same, True)[:n]
    origin[grouped[last_of_group]] = order[last_of_group]
    swapped_with_itself = partners == np.arange(n)
    origin[swapped_with_itself] = np.where(previous < 0, np.arange(n), previous)[swapped_with_itself]
    active = np.flatnonzero(origin != np.arange(n))
    while active.size:
        further = origin[origin[active]]
        moved = further != origin[active]
        origin[active] = further
        active = active[moved]
    return np.where(previous < 0, partners, origin[previous])


def swap_backwards(partners: Positions) -> Positions:
    """Swap positions k and partners[k] <= k of 0, 1, 2, ... for each k in turn.

    The inverse permutation does the swaps in the opposite order; seen from the far end these are forward swaps.
    """
    last = len(partners) - 1
    inverse = last - swap_forwards(last - partners[::-1])[::-1]
    result = np.empty_like(partners)
    result[inverse] = np.arange(len(partners))
    return result


def _order_by_partner(keys: Positions, limit: int) -> Positions:
    """The order that sorts `keys` < `limit`: 16 bits at a time, for which NumPy has a linear-time sort."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    shift = 16
    while limit > 1 << shift:
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
        shift += 16
    return order


def check_dtype(n: int, dtype: np.dtype[Any]) -> None:
    """Refuse a type of elements that does not hold the numbers below n."""
    if dtype.kind in "bc" or name_of(dtype) in BAREBONES_UNSIGNED:
        raise not_implemented("randperm", dtype)
    if name_of(dtype) in _FLOAT_LIMITS:
        limit, shown = _FLOAT_LIMITS[name_of(dtype)]
        if n > limit:
            raise RuntimeError(f"n cannot be greater than {shown} for {legacy_name(dtype)} type. Here n is {n}")
    elif dtype.kind in "iu" and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name}_t without overflow: randperm({n}) needs a wider dtype"
        )
