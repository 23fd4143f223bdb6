"""Code for graphs whose function has another form than the graph: nests of arguments, or all of them in one list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..utils import _pytree as pytree
from ._code import CodeGen


class _PyTreeInfo(NamedTuple):
    """The names of the function's parameters and the structures of its arguments and of its result."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """The function takes nests and returns one; the graph sees their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of the arguments."""
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        """The nest that the leaves are of."""
        spec = self.pytree_info.out_spec
        if spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], spec)

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The statement that takes the arguments apart."""
        spec = self.pytree_info.in_spec
        nest = f"[{', '.join(fn_args)}]"
        if _is_args_and_kwargs(spec):
            number, names = spec.child(0).num_children, self.pytree_info.orig_args
            by_name = ", ".join(f"'{k}':{v}" for k, v in zip(spec.child(1).context, names[number:], strict=False))
            nest = f"([{', '.join(names[:number])}], {{{by_name}}})"
        annotated = [each for each in free_vars if ":" in each]
        separate = "".join(f"\n    {each}" for each in annotated)
        if annotated and not expanded_def:
            separate = f"\n    {''.join(f'{each}; ' for each in annotated)}\n"
        names = [each.split(":")[0].split("#")[0] for each in free_vars]
        return f"{separate}\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec({nest}, self._in_spec)"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The function takes what the traced one took, and takes it apart."""
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return definition + self.gen_var_bindings(names, free_vars, expanded_def) if free_vars else definition

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The result is put together again."""
        if not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        leaves = super().generate_output(output_args, descs=descs, repr_fn=repr_fn).removeprefix("return ")
        return f"return pytree.tree_unflatten({leaves}, self._out_spec)"


def _is_args_and_kwargs(spec: pytree.TreeSpec) -> bool:
    return spec.type is tuple and spec.num_children == 2 and spec.child(0).type is tuple and spec.child(1).type is dict


class _BoxedCodeGen(CodeGen):
    """The function takes one list, which it empties, so that inputs are freed while it runs."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The function begins by taking the inputs out of the list."""
        definition = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [each.split(":")[0].split("=")[0].strip() for each in free_vars if each != "self"]
        if not names:
            return definition
        taken = "".join(f"\n    {name} = next(args_iter)" for name in names)
        return f"{definition}\n    args_iter = iter(args_list){taken}\n    args_list.clear()"
