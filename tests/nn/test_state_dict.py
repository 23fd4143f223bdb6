"""State dicts of modules: saving, loading, hooks and reports, beside PyTorch's."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import flambeau
from tests.nn.samples import small
from tests.support.differential import differential, outcome, warned


@differential
def test_state_dict(T: Any) -> Any:
    T.manual_seed(0)
    module = small(T)
    model = T.nn.Sequential(module, T.nn.BatchNorm1d(2))
    kept = module.state_dict(keep_vars=True)
    destination: dict[str, Any] = {"there": 1}
    result = module.state_dict(destination=destination, prefix="p.")
    return (
        model.state_dict(),
        dict(model.state_dict()._metadata),
        type(model.state_dict()).__name__,
        kept,
        kept["w"] is module.w,
        module.state_dict()["w"].data_ptr() == module.w.data_ptr(),
        list(result),
        result is destination,
        warned(lambda: list(module.state_dict(OrderedDict(), "p.", True)), "Positional args are being deprecated"),
    )


@differential
def test_load_state_dict(T: Any) -> Any:
    T.manual_seed(0)
    source, module = small(T), small(T)
    with T.no_grad():
        source.w.fill_(5.0)
    weight = module.w
    result = module.load_state_dict(source.state_dict())
    partial = module.load_state_dict({"w": T.zeros(2), "k": 1}, strict=False)
    return (
        repr(result),
        str(result),
        list(result),
        repr(partial),
        partial.missing_keys,
        partial.unexpected_keys,
        module.w is weight,
        module.state_dict(),
    )


@differential
def test_what_does_not_load(T: Any) -> Any:
    module = small(T)

    def load(state: Any, strict: bool = True, into: Any = None) -> Any:
        try:
            return repr((into or module).load_state_dict(state, strict=strict))
        except (RuntimeError, TypeError) as error:
            return type(error).__name__, str(error)

    wrong = {"w": T.ones(3), "lin.weight": T.ones(5), "zz": 1, "lin.qq.r": 2, "b": "text", "b.e": 1, "count": 2}
    return (
        load({}),
        load(wrong),
        load(wrong, strict=False),
        load(3),
        load({"0.w": T.ones(3)}, into=T.nn.Sequential(module, small(T))),
        outcome(lambda: load({**module.state_dict(), "w": T.ones(2, device="meta")})[1].partition("an exception")[0]),
        module.w,
    )


@differential
def test_old_scalars_and_missing_modules(T: Any) -> Any:
    module = T.nn.Module()
    module.register_buffer("number", T.tensor(1.0))
    module.nothing = None
    module.register_parameter("absent", None)
    return repr(module.load_state_dict({"number": T.tensor([4.0])})), module.number


@differential
def test_load_into_and_from_meta(T: Any) -> Any:
    source = small(T)
    onto_meta = warned(
        lambda: repr(small(T).to("meta").load_state_dict(source.state_dict())),
        "for w: copying from a non-meta parameter in the checkpoint to a meta parameter",
    )
    module = small(T).to("meta")
    module.load_state_dict(source.state_dict(), assign=True)
    kept = small(T)
    kept.load_state_dict(source.state_dict(keep_vars=True), assign=True)
    return (
        onto_meta,
        module.w,
        module.b,
        type(module.w).__name__,
        kept.w is source.w,
        kept.b is source.b,
        module.w.data_ptr() == source.w.data_ptr(),
    )


@differential
def test_assigned_tensors_keep_dtype_and_take_requires_grad(T: Any) -> Any:
    module = small(T).requires_grad_(False)
    module.load_state_dict(small(T).double().state_dict(), assign=True)
    return module.w, module.b


@differential
def test_extra_state(T: Any) -> Any:
    class Extra(T.nn.Module):  # type: ignore[misc, name-defined]
        state: Any = "saved"

        def get_extra_state(self) -> Any:
            return self.state

        def set_extra_state(self, state: Any) -> None:
            self.state = state

    model = T.nn.Sequential(Extra(), T.nn.ReLU())
    model.load_state_dict({"0._extra_state": "loaded"})
    return (
        dict(model.state_dict()),
        outcome(lambda: model.load_state_dict({}), 'Missing key(s) in state_dict: "0._extra_state"'),
        outcome(
            lambda: model.load_state_dict({"1._extra_state": 1}), 'Unexpected key(s) in state_dict: "1._extra_state"'
        ),
        outcome(lambda: T.nn.Module().get_extra_state(), "Reached a code path in Module.get_extra_state()"),
        outcome(lambda: T.nn.Module().set_extra_state(1), "Reached a code path in Module.set_extra_state()"),
    )


@differential
def test_versions_reach_the_loading_module(T: Any) -> Any:
    seen: list[Any] = []

    class Versioned(T.nn.Module):  # type: ignore[misc, name-defined]
        _version = 3

        def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
            seen.append((prefix, dict(local_metadata)))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = T.nn.Sequential(Versioned())
    model.load_state_dict(model.state_dict())
    model.load_state_dict({})
    model.load_state_dict(model.state_dict(), assign=True)
    return seen


@differential
def test_state_dict_hooks(T: Any) -> Any:
    seen: list[Any] = []
    module = small(T)
    module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))

    def post(m: Any, state: Any, prefix: str, metadata: Any) -> None:
        seen.append(("post", prefix, metadata))
        state[prefix + "added"] = 1

    handle = module.register_state_dict_post_hook(post)
    keys = list(T.nn.Sequential(module).state_dict())
    handle.remove()

    def returning(*args: Any) -> Any:
        return {"only": 1}

    inner = module._register_state_dict_hook(returning)
    replaced = module.state_dict()
    inner.remove()
    module.register_state_dict_post_hook(returning)
    return (
        seen,
        keys,
        replaced,
        outcome(lambda: module.state_dict(), "state_dict post-hook must return None"),
        outcome(lambda: module._register_state_dict_hook(returning), "Cannot register the same function as the state"),
    )


@differential
def test_load_state_dict_hooks(T: Any) -> Any:
    seen: list[Any] = []
    module = small(T)

    def rename(m: Any, state: Any, prefix: str, *rest: Any) -> None:
        seen.append((m is module, prefix, len(rest)))
        if prefix + "old" in state:
            state[prefix + "w"] = state.pop(prefix + "old")

    module.register_load_state_dict_pre_hook(rename)
    module._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)))
    module.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    result = T.nn.Sequential(module).load_state_dict({"0.old": T.full((2,), 9.0)})
    module.register_load_state_dict_post_hook(lambda m, keys: keys)
    return (
        seen,
        repr(result),
        module.w,
        outcome(lambda: module.load_state_dict({}), "are not expected to return new values"),
    )


def test_a_common_prefix_of_the_keys_is_pointed_out() -> None:
    model = flambeau.nn.Sequential(flambeau.nn.Linear(2, 2))
    wrapped = {f"module.{key}": value for key, value in model.state_dict().items()}
    with pytest.raises(RuntimeError, match=r'begin with "module\.", which .*consume_prefix_in_state_dict_if_present'):
        model.load_state_dict(wrapped)
    flambeau.nn.modules.utils.consume_prefix_in_state_dict_if_present(wrapped, "module.")
    model.load_state_dict(wrapped)
