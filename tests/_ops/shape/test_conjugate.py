"""Views that remember to conjugate or to negate: what they share, what they refuse, and what resolves them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome, supported

COMPLEX = ("complex32", "complex64", "complex128")


def _matrix(T: Any, dtype: str = "complex64") -> Any:
    return T.tensor([[1 + 2j, 3 - 4j], [5j, 6 + 0j]], dtype=getattr(T, dtype))


def _signs(*tensors: Any) -> list[tuple[bool, bool]]:
    return [(each.is_conj(), each.is_neg()) for each in tensors]


def _names(tensor: Any) -> list[str]:
    names, node = [], tensor.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


# ----- sharing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEX)
@differential
def test_a_conjugate_sees_later_changes(T: Any, dtype: str) -> Any:
    a = _matrix(T, dtype)
    c, h = a.conj(), a.mH
    a[0, 1] = 7 + 8j
    shared = c.data_ptr() == a.data_ptr(), c.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    return c, h, _signs(a, c, h, c.imag, c.real, c.conj()), shared, c._base is a, c._is_view(), c._version


@pytest.mark.parametrize("dtype", COMPLEX)
@differential
def test_writing_through_views(T: Any, dtype: str) -> Any:
    def written(change: Callable[[Any], Any]) -> Any:
        a = _matrix(T, dtype)
        return supported(lambda: (change(a) is NotImplemented, a, a._version))

    def numbers(*values: complex) -> Any:
        return T.tensor(values, dtype=getattr(T, dtype))

    real = numbers(1).real.dtype
    return [
        written(lambda a: a.mH.fill_(1 + 2j)),
        written(lambda a: a.mH[0].copy_(numbers(1j, 2 - 1j))),
        written(lambda a: a.conj().imag.fill_(3.0)),
        written(lambda a: a.conj().imag.copy_(T.tensor([1.0, -2.0], dtype=real))),
        written(lambda a: a.conj().real.add_(1)),
        written(lambda a: a.conj().__setitem__(0, 2 + 3j)),
        written(lambda a: a.conj().__setitem__((slice(None), 1), numbers(1j, -1j))),
        written(lambda a: a.conj().__setitem__(0, a.conj()[1])),
        written(lambda a: a.__setitem__(0, a.conj()[1])),
        written(lambda a: a.__setitem__(T.tensor([0]), a.conj()[1:])),
        written(lambda a: a.conj().__setitem__(T.tensor([0]), numbers(1j, 2j))),
        written(lambda a: a.conj().mul_(2j)),
        written(lambda a: a.conj().conj_physical_()),
        written(lambda a: a.conj().zero_()),
        written(lambda a: setattr(a.conj(), "imag", T.tensor(4.0, dtype=real))),
        written(lambda a: setattr(a.conj(), "real", T.tensor(4.0, dtype=real))),
        written(lambda a: T._neg_view(a).mul_(1j)),
        written(lambda a: T._neg_view(a).conj()[0].fill_(1 + 1j)),
        written(lambda a: T._neg_view(a).imag.fill_(1)),
        written(lambda a: a.copy_(a.conj())),
        written(lambda a: a.conj().copy_(a)),
        written(lambda a: a.conj().copy_(a.conj())),
        written(lambda a: a.conj().copy_(T._neg_view(a).clone())),
        written(lambda a: a.conj().masked_fill_(a.abs() > 5, 1j)),
        written(lambda a: a.conj().T.add_(a.T)),
        written(lambda a: a.add_(a.mH)),
    ]


@differential
def test_copying_a_matrix_into_its_own_adjoint_is_refused(T: Any) -> Any:
    a = _matrix(T)
    return outcome(lambda: a.copy_(a.mH), "refer to a single memory location"), a


@differential
def test_random_numbers_in_signed_views(T: Any) -> Any:
    def drawn(view: Callable[[Any], Any], fill: Callable[[Any], Any]) -> Any:
        a = T.zeros(3, dtype=T.complex64)
        T.manual_seed(3)
        v = view(a)
        fill(v)
        return a, v

    return [
        drawn(lambda a: a.conj(), lambda v: v.normal_()),
        drawn(lambda a: a.conj(), lambda v: v.uniform_()),
        drawn(lambda a: a.conj().imag, lambda v: v.uniform_(1, 2)),
        drawn(lambda a: a.conj().imag, lambda v: v.bernoulli_(0.5)),
        drawn(lambda a: a.conj().imag, lambda v: T.randn(3, out=v)),
    ]


# ----- marks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEX[1:])
@differential
def test_which_results_remember(T: Any, dtype: str) -> Any:
    a = _matrix(T, dtype)
    c = a.conj()
    n = T._neg_view(c)
    kept = [
        *(c.T, c.mH, c.H, c.adjoint(), c.view(4), c.reshape(4), c[0], c[:, 0], c[..., None], c.expand(3, 2, 2)),
        *(c.flatten(), c.unbind()[0], c.diagonal(), c.as_strided((2,), (1,)), c.unfold(0, 1, 1), c.split(1)[0]),
        *(c.squeeze(), c.detach(), c.data, c.contiguous(), c.to(a.dtype), c.to("cpu"), c.cpu(), c.view_as(a)),
        *(T._conj(a), T._conj(c), T._neg_view(a), T._neg_view(n), n, n.conj(), n.imag, n.real, a.conj().imag.real),
        *(T.view_as_real(T._neg_view(a)), T.view_as_complex(T._neg_view(T.view_as_real(a)))),
        *(T.atleast_3d(c), c.permute(1, 0), c.movedim(0, 1), c.unsqueeze(0), c.alias() if hasattr(c, "alias") else c),
    ]
    taken = [
        *(c.clone(), c.T.contiguous(), c.resolve_conj(), n.resolve_conj(), n.resolve_neg(), c.T.reshape(4)),
        *(c.conj_physical(), T._conj_physical(c), c * 2, -c, -c.imag, c + c, c.to("cpu", copy=True)),
        *(c[[0]], c[a.abs() > 3], c.index_select(0, T.tensor([0])), c.repeat(2, 1), c.flip(0), T.cat([c, c])),
        *(T.stack([c]), T.zeros_like(c), T.ones_like(c), T.full_like(c, 2), c.new_zeros(2), T.view_as_real_copy(c)),
    ]
    same = [c.to(a.dtype) is c, c.contiguous() is c, a.resolve_conj() is a, a.resolve_neg() is a, c.is_same_size(a)]
    return kept, _signs(*kept), taken, _signs(*taken, T.empty_like(c)), same, c.is_set_to(a)


@differential
def test_real_tensors(T: Any) -> Any:
    x = T.tensor([1.0, -2.0])
    whole = T._neg_view(T.tensor([1, -2]))
    bits = T._neg_view(T.tensor([True]))
    return (
        *(x.conj() is x, x.resolve_conj() is x, x.conj_physical() is x, _signs(x, x.conj(), whole, bits), whole),
        *(whole.tolist(), whole[0].item(), whole + 1, outcome(lambda: bits.tolist(), '"neg_cpu" not implemented')),
        *(outcome(lambda: T._conj(x)), x[T._neg_view(T.tensor([-1, 0]))], T.arange(6.0)[T._neg_view(T.tensor(-2))]),
    )


@differential
def test_meta_tensors(T: Any) -> Any:
    m = T.empty(2, 3, dtype=T.complex64, device="meta")
    c = m.conj()
    results = (
        c,
        c.mH,
        c.imag,
        c.real,
        c * 2,
        c.clone(),
        c.resolve_conj(),
        c.add_(1),
        m.to("meta"),
        _matrix(T).conj().to("meta"),
    )
    return results, _signs(*results)


@differential
def test_setting_data(T: Any) -> Any:
    a, x, y = _matrix(T), _matrix(T), _matrix(T)
    x.data = a.conj()
    y.set_(a.conj())
    resized = _matrix(T).conj()
    resized.resize_(3)
    return x, y, resized, _signs(x, y, resized), T.nn.Parameter(a.conj()), _signs(T.nn.Parameter(a.conj()))


# ----- what leaves the library ----------------------------------------------------------------------------------------


@differential
def test_numpy_refuses(T: Any) -> Any:
    c = _matrix(T).conj()
    return (
        outcome(c.numpy, "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy()"),
        outcome(
            c.imag.numpy, "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy()"
        ),
        outcome(lambda: np.asarray(c), "conjugate bit set"),
        *(c.numpy(force=True), c.imag.numpy(force=True), T._neg_view(c).numpy(force=True), c.resolve_conj().numpy()),
        outcome(c.__dlpack__, "Can't export tensors with the conjugate bit set"),
        outcome(lambda: T.view_as_real(c), "view_as_real doesn't work on unresolved conjugated tensors"),
        outcome(
            lambda: c.view(T.float32), "is not supported for conjugate view tensors when converting to a different"
        ),
        outcome(
            lambda: c.imag.view(T.int32), "is not supported for tensors with negative bit set when converting to a"
        ),
    )


def test_memory_of_signed_views_is_not_exported() -> None:
    """PyTorch hands the raw memory of a negative view to other libraries; here that is refused."""
    part = flambeau.tensor([1 + 2j]).conj().imag
    for export in (part.__dlpack__, lambda: flambeau.utils.dlpack.to_dlpack(part)):
        with pytest.raises(BufferError, match="negative bit set"):
            export()


@differential
def test_reading(T: Any) -> Any:
    c = _matrix(T).conj()
    n = T._neg_view(c)
    tensors = T.tensor(c.tolist()), T.as_tensor(c), T.asarray(c)
    return (
        *(c.tolist(), n.tolist(), c[0, 0].item(), complex(c[0, 0]), float(c.imag[0, 0]), bool(c.imag[1, 1] == 0)),
        *(repr(c), repr(c.imag), repr(n), str(c[0, 1]), tensors, _signs(*tensors), T.equal(c, c.resolve_conj())),
        *(T.equal(c, _matrix(T)), T.allclose(c, c.clone()), len(c), c.sum(), c.abs(), c @ c.mH, T.linalg.det(c)),
    )


def _saved(library: Any, value: Any) -> io.BytesIO:
    file = io.BytesIO()
    library.save(value, file)
    file.seek(0)
    return file


@differential
def test_copies_and_pickles(T: Any) -> Any:
    a = _matrix(T)
    c, n = a.conj(), T._neg_view(a.conj())
    copies = [copy.deepcopy(c), copy.deepcopy(c.imag), copy.copy(c)]
    pickles = [pickle.loads(pickle.dumps(each)) for each in (c, c.imag, n, c.T)]
    files = [T.load(_saved(T, each)) for each in (c, c.imag, n, c.T, T._neg_view(a.imag), a.to(T.complex32).conj())]
    both = T.load(_saved(T, [a, c]))
    both[0].mul_(2j)
    results = [*copies, *pickles, *files, *both]
    return results, _signs(*results)


@pytest.mark.parametrize(("writer", "reader"), [(flambeau, pytorch), (pytorch, flambeau)], ids=["to", "from"])
def test_files_between_both(writer: Any, reader: Any) -> None:
    a = _matrix(writer)
    for value in (a.conj(), a.conj().imag, writer._neg_view(a.mH), writer._neg_view(a)):
        read = reader.load(_saved(writer, value))
        assert read.tolist() == value.tolist()
        assert _signs(read) == _signs(value)


@differential
def test_out(T: Any) -> Any:
    a, x, y, z = _matrix(T), _matrix(T), _matrix(T), _matrix(T)
    outs = x.conj(), T._neg_view(y).imag, z.mH
    T.add(a, 1j, out=outs[0])
    T.abs(a, out=outs[1])
    T.mm(a, a.conj(), out=outs[2])
    return outs, _signs(*outs), x, y, z


# ----- derivatives ----------------------------------------------------------------------------------------------------


@differential
def test_node_names(T: Any) -> Any:
    a = _matrix(T, "complex128").requires_grad_()
    c = a.conj()
    views = (
        *(c, a.mH, a.H, a.adjoint(), c.imag, c.real, a.imag, T._neg_view(a), a.conj_physical(), c.clone()),
        *(c.resolve_conj(), T._neg_view(a).resolve_neg(), c[0], c.conj(), T._conj(a), T._conj_physical(a), c * 2),
    )
    squared = c * c
    return [_names(each) for each in views], views, _signs(squared.grad_fn._saved_self), squared.grad_fn._saved_self


@differential
def test_gradients(T: Any) -> Any:
    def gradient(function: Callable[[Any], Any], weight: complex = 1 + 0.5j) -> Any:
        a = _matrix(T, "complex128").requires_grad_()
        b = a * 1
        result = function(b)
        (result * (weight if result.is_complex() else weight.real)).sum().abs().backward()
        return a.grad, result

    def in_place(view: Callable[[Any], Any], change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        def run(b: Any) -> Any:
            v = view(b)
            change(v, b)
            return b * v.sum() if v.dim() != b.dim() else b * v

        return run

    return [
        gradient(lambda b: b.conj()),
        gradient(lambda b: b.mH @ b),
        gradient(lambda b: b.conj().imag * b.real),
        gradient(lambda b: T._neg_view(b) * b.conj()),
        gradient(lambda b: T.view_as_real(T._neg_view(b))),
        gradient(in_place(lambda b: b.conj(), lambda v, b: v.mul_(2j))),
        gradient(in_place(lambda b: b.conj().imag, lambda v, b: v.mul_(3))),
        gradient(in_place(lambda b: b.mH, lambda v, b: v[0].copy_(T.tensor([2j, 3])))),
        gradient(in_place(lambda b: b.conj()[0], lambda v, b: v.mul_(b.detach()[1].clone()))),
        gradient(in_place(lambda b: T._neg_view(b).real, lambda v, b: v.exp_())),
        gradient(in_place(lambda b: b.conj().T, lambda v, b: b.mul_(1 - 1j))),
        gradient(in_place(lambda b: b.conj().conj(), lambda v, b: v.add_(b.clone()))),
        gradient(in_place(lambda b: T._neg_view(b.conj())[:, 1], lambda v, b: v.exp_())),
    ]


@differential
def test_histories_after_changes(T: Any) -> Any:
    a = _matrix(T, "complex128").requires_grad_()
    b = a * 1
    views = b.conj(), b.conj()[0], b.mH, T.view_as_real(b), T._neg_view(b)
    b.mul_(2j)
    after_base = [_names(each) for each in views]
    views[0].mul_(2)
    return after_base, [_names(each) for each in (b, *views)], views, b, _signs(*views)


@differential
def test_which_gradients_remember(T: Any) -> Any:
    a = _matrix(T, "complex128").requires_grad_()
    hooked: list[Any] = []
    b = a * 1
    b.register_hook(lambda grad: hooked.append((grad, _signs(grad))))
    b.conj().backward(T.ones_like(b) * 1j)
    c = _matrix(T, "complex128").requires_grad_()
    c.conj().backward(T.ones(2, 2, dtype=T.complex128) * 1j)
    (asked,) = T.autograd.grad(c.conj(), c, T.ones(2, 2, dtype=T.complex128) * 1j)
    c.conj().backward(T.ones(2, 2, dtype=T.complex128))
    return hooked, a.grad, c.grad, asked, _signs(asked)


@differential
def test_refused_changes(T: Any) -> Any:
    a = _matrix(T).requires_grad_()
    with T.no_grad():
        unrecorded = a.conj()
    b = a * 1
    square = b.conj() * b.conj()
    b.mul_(2)
    return (
        outcome(lambda: a.conj().mul_(2), "a view of a leaf Variable that requires grad"),
        outcome(lambda: unrecorded.mul_(2), "A view was created in no_grad mode"),
        outcome(lambda: square.sum().abs().backward(), "has been modified by an inplace operation"),
        outcome(a.conj().numpy, "requires grad"),
    )


@differential
def test_forward_mode(T: Any) -> Any:
    from importlib import import_module

    forward = import_module(f"{T.__name__}.autograd.forward_ad")
    with forward.dual_level():
        d = forward.make_dual(T.tensor([1 + 2j, 3]), T.tensor([1j, 2 + 1j]))
        c = d.conj()
        duals = c, c.imag, T._neg_view(d), c * 2j, c.clone(), d.conj().conj(), c.real
        found = [forward.unpack_dual(each) for each in duals]
        c.mul_(2j)
        changed = forward.unpack_dual(c)
        return [(each.primal, each.tangent, _signs(each.primal, each.tangent)) for each in found], changed.tangent


@differential
def test_inference_mode(T: Any) -> Any:
    with T.inference_mode():
        a = T.tensor([1 + 2j])
        c = a.conj()
        c.mul_(2j)
        return a.clone(), c.clone(), _signs(c, c.imag)


@pytest.mark.parametrize("name", ["SGD", "Adam", "LBFGS"])
def test_optimizers_read_conjugated_gradients(name: str) -> None:
    """In PyTorch only some do: others refuse the gradient that `conj` leaves behind."""
    found = []
    for conjugated in (True, False):
        a = flambeau.tensor([1 + 2j, 3], requires_grad=True)
        optimizer = getattr(flambeau.optim, name)([a], lr=0.1)

        def closure(a: Any = a, conjugated: bool = conjugated) -> Any:
            weight = flambeau.tensor([1j, 2 - 1j])
            a.grad = weight.conj() if conjugated else weight.conj_physical()
            return flambeau.tensor(0.0)

        closure()
        optimizer.step(closure)
        found.append(a.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_negation_in_place_at_every_stride(dtype: str) -> None:
    for step in range(1, 20):
        x = flambeau.arange(7 * step, dtype=getattr(flambeau, dtype))
        expected = [-each for each in x[::step].tolist()]
        assert x[::step].neg_().tolist() == expected
