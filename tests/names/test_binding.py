"""A public function that PyTorch has compiled is no method of a class whose attribute it is; it pickles and copies."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import pickle
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch as pytorch

import flambeau

_MODULES = ("", "linalg", "fft", "special", "nn.functional", "sparse", "nested", "overrides", "nn.utils.rnn", "_C._nn",
            "_C._linalg", "_C._fft", "_C._special", "autograd", "jit", "random", "_VF")  # fmt: skip


def _both() -> Iterator[tuple[str, str, Any, Any]]:
    """Every name under which PyTorch has a compiled function and Flambeau has something."""
    for path in _MODULES:
        theirs = importlib.import_module(".".join(filter(None, ("torch", path))))
        ours = importlib.import_module(".".join(filter(None, ("flambeau", path))))
        for name in dir(theirs):
            function = getattr(theirs, name, None)
            if not name.startswith("__") and isinstance(function, types.BuiltinFunctionType):
                found = getattr(ours, name, None)
                if found is not None:
                    yield path, name, function, found


def test_class_attributes_do_not_bind() -> None:
    binding = []
    count = 0
    for path, name, theirs, ours in _both():
        holder = type("Holder", (), {"theirs": theirs, "ours": ours})()
        assert holder.theirs is theirs
        count += 1
        if holder.ours is not ours:
            binding.append(f"{path}.{name}")
    assert count > 1000
    assert not binding, "\n".join(binding)


def test_functions_written_in_python_bind() -> None:
    for path in _MODULES:
        theirs = importlib.import_module(".".join(filter(None, ("torch", path))))
        ours = importlib.import_module(".".join(filter(None, ("flambeau", path))))
        names = [name for name in dir(theirs) if isinstance(getattr(theirs, name, None), types.FunctionType)]
        assert [name for name in names if isinstance(getattr(ours, name, None), types.MethodType)] == []


@pytest.mark.parametrize("path", ["", "linalg", "fft", "special", "nn.functional"])
def test_functions_pickle_and_copy(path: str) -> None:
    names = [(name, ours) for place, name, _, ours in _both() if place == path and isinstance(ours, types.MethodType)]
    assert len(names) > 10
    for name, function in names:
        assert pickle.loads(pickle.dumps(function)) == function, name
        assert copy.deepcopy(function) == copy.copy(function) == function, name
        assert inspect.isroutine(function), name
        assert function.__doc__, name
        assert "namespace" not in inspect.signature(function).parameters, name


def test_methods_are_other_objects() -> None:
    for torch in (pytorch, flambeau):
        assert torch.add is not torch.Tensor.add
        assert torch.add != torch.Tensor.add
        assert pickle.loads(pickle.dumps(torch.Tensor.add)) is torch.Tensor.add


def test_overrides_are_told_apart() -> None:
    """A function and the method of the same name are two things to a `__torch_function__`."""

    def seen(torch: Any) -> list[Any]:
        calls = []

        class Listening(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                calls.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        x = torch.eye(2).as_subclass(Listening)
        torch.add(x, x), x.add(x), torch.clone(x), x.clone(), torch.sum(x, dim=0), torch.zeros_like(x)
        torch.sin_(x), x.sin_(), torch.linalg.inv(x), torch.nn.functional.gelu(x)
        functions = {
            torch.add: "add", torch.Tensor.add: "Tensor.add", torch.clone: "clone", torch.Tensor.clone: "Tensor.clone",
            torch.sum: "sum", torch.zeros_like: "zeros_like", torch.sin_: "sin_", torch.Tensor.sin_: "Tensor.sin_",
            torch.linalg.inv: "inv", torch.nn.functional.gelu: "gelu",
        }  # fmt: skip
        return [functions.get(each, repr(each)) for each in calls]

    assert seen(flambeau) == seen(pytorch)


def test_saved_functions_load() -> None:
    buffer = io.BytesIO()
    flambeau.save({"act": flambeau.sigmoid, "inv": flambeau.linalg.inv}, buffer)
    buffer.seek(0)
    loaded = flambeau.load(buffer, weights_only=False)
    assert loaded == {"act": flambeau.sigmoid, "inv": flambeau.linalg.inv}
