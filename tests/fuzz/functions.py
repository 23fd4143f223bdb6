"""Writes custom Functions that change, return and mark their inputs in every way, and what may stand around a call."""

from __future__ import annotations

from .program import Program
from .writer import Writer

_FORWARD = (
    "x * 2", "x.mul_(2)", "x.view(-1)", "x", "y", "x[0]", "x.detach()", "x.data", "x * y", "x.t()", "torch.empty(0)",
    "(x * 2).long()", "x.to(torch.float64)", "x.add_(y)", "y.copy_(x)", "x.t_()", "x.squeeze_()", "x.requires_grad_()",
    "x.mul_(2).view(-1)", "x * 2, x.sum()", "x, x * 2", "x, y", "x.mul_(2), x.sum()", "x.mul_(2), y * 2",
    "x.view(-1), x * 3", "x.t(), y.mul_(3)", "y.copy_(x), x", "x[0].mul_(2), x", "[x * 2, y]", "x * 2, None",
    "x * 2, 3", "x.unbind(0)", "x.split(1)",
)  # fmt: skip

_TENSORS = "*[each for each in outputs if isinstance(each, torch.Tensor)]"

_DIRTY = ("", "", "", "x", "y", "x, y", "outputs[0]")
_NOT_DIFFERENTIABLE = ("", "", "", "", "outputs[0]", "outputs[-1]", "x", _TENSORS)
_SAVED = ("", "x", "x, y", _TENSORS, "outputs[0], None")

_BACKWARD = (
    *("return torch.ones(2, 2) * total, torch.ones(2, 2) * total * 3",) * 4,
    "return None, total.expand(2, 2)",
    "return torch.ones(2, 2)",
    "return torch.ones(2, 2), torch.ones(2, 2), None, None",
    "return torch.ones(3), torch.ones(3)",
    "return 'no', 2",
    "return torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)",
    "return (torch.ones(4) * total).view(2, 2), (torch.ones(4) * total).view(2, 2).t()",
    "return grads[0], grads[0]",
    "return torch.ones(1), torch.ones(2, 2).expand(3, 2, 2)",
)

_SOURCES = (
    *("{0} = {0}0", "{0} = {0}0 * 1") * 2,
    "{0} = ({0}0 * 1).view(2, 2)",
    "{0} = {0}0.view(2, 2)",
    "{0} = torch.stack([{0}0, {0}0 * 2]).unbind(0)[1]",
    "{0} = {0}0.detach()",
    "with torch.no_grad():\n    {0} = {0}0.view(2, 2)",
)

_AROUND = (
    *("",) * 5,
    "with torch.no_grad():",
    "with torch.inference_mode():",
    "with torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each):",
)

_AFTER = (
    "outputs[0].mul_(2)",
    "x.mul_(2)",
    "x0.mul_(2)",
    "y.mul_(2)",
    "outputs[-1].add_(1)",
    "outputs[0].detach_()",
    "outputs[0].requires_grad_()",
    "outputs[0].retain_grad()",
    "outputs[0].data.zero_()",
    "look(outputs[0].view(-1))",
    "with torch.no_grad():\n    outputs[0].mul_(2)",
    "x.register_hook(lambda grad: grad * 2)",
    "outputs[0].register_hook(lambda grad: see('hook', grad.shape))",
    "outputs[0].grad_fn.register_prehook(lambda grads: see('pre', [each is None for each in grads]))",
    "outputs[0].grad_fn.register_hook(lambda given, grads: see('post', [each is None for each in given]))",
)

_END = (
    *("total.backward()",) * 3,
    "total.backward()\ntotal.backward()",
    "total.backward(retain_graph=True)\ntotal.backward()",
    "see(torch.autograd.grad(total, [each for each in (x, y) if each.requires_grad], allow_unused=True))",
    """\
roots = [each for each in (x0, y0) if each.requires_grad]
first = torch.autograd.grad(total, roots, allow_unused=True, create_graph=True)
see(first)
sum(each.sum() for each in first if each is not None).backward()""",
)

_LOOK = """\
def look(*values):
    for each in values:
        if not isinstance(each, torch.Tensor):
            see(type(each).__name__)
            continue
        see(each, each._is_view(), None if each._base is None else each._base.shape, each.is_inference())
        see(None if each.grad_fn is None else [each.grad_fn.name(), each.output_nr, len(each.grad_fn.next_functions)])
"""


class _Function(Writer):
    def write(self) -> Program:
        self.line(_LOOK)
        self.function()
        for name in ("x", "y"):
            self.line(
                f"{name}0 = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad={self.pick((True, True, False))})"
            )
            self.line(self.pick(_SOURCES).format(name))
        if self.chance(0.1):
            self.line("y = x")
        around = self.pick(_AROUND)
        if around:
            self.line(around)
        self.line("result = Own.apply(x, y)", 1 if around else 0)
        self.line("outputs = result if isinstance(result, (tuple, list)) else (result,)")
        self.line("look(*outputs, x, y)")
        self.line("see([each is x or each is y for each in outputs])")
        for _ in range(self.pick((0, 0, 1, 1, 2))):
            self.line(self.pick(_AFTER))
        summed = "each.double().sum() for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad"
        self.line(f"total = sum(({summed}), torch.zeros(()))")
        self.line(self.pick(_END))
        self.line("see(x0.grad, y0.grad)")
        self.line("look(outputs[0], x, y)")
        return self.program()

    def function(self) -> None:
        """The class, in one of the two styles."""
        forward = self.pick(_FORWARD)
        marks = self.marks(forward)
        self.line("class Own(torch.autograd.Function):")
        self.line("@staticmethod", 1)
        if self.chance(0.5):
            self.line("def forward(ctx, x, y):", 1)
            self.line(f"result = {forward}", 2)
            self.line("outputs = result if isinstance(result, (tuple, list)) else (result,)", 2)
            for each in marks:
                self.line(each, 2)
            self.line("return result", 2)
        else:
            self.line("def forward(x, y):", 1)
            self.line(f"return {forward}", 2)
            self.line("@staticmethod", 1)
            self.line("def setup_context(ctx, inputs, output):", 1)
            self.line("x, y = inputs", 2)
            self.line("outputs = output if isinstance(output, (tuple, list)) else (output,)", 2)
            for each in marks:
                self.line(each, 2)
        self.line("@staticmethod", 1)
        if self.chance(0.15):
            self.line("@torch.autograd.function.once_differentiable", 1)
        self.line("def backward(ctx, *grads):", 1)
        self.line("see([None if each is None else each.shape for each in grads], list(ctx.needs_input_grad))", 2)
        self.line("see([None if each is None else each.requires_grad for each in ctx.saved_tensors])", 2)
        self.line("total = sum((each.sum() for each in grads if each is not None), torch.zeros(()))", 2)
        self.line(self.pick(_BACKWARD), 2)

    def marks(self, forward: str) -> list[str]:
        """What `forward` says of its inputs and outputs, mostly the truth."""
        dirty = self.pick(_DIRTY)
        if "_(" in forward and self.chance(0.7):
            dirty = forward.partition("_(")[0].rpartition(", ")[2].partition(".")[0].partition("[")[0]
        other, saved = self.pick(_NOT_DIFFERENTIABLE), self.pick(_SAVED)
        marks = [
            f"ctx.mark_dirty({dirty})" if dirty else "",
            f"ctx.mark_non_differentiable({other})" if other else "",
            f"ctx.save_for_backward({saved})" if saved else "",
            self.pick(("", "", "ctx.set_materialize_grads(False)")),
        ]
        self.random.shuffle(marks)
        return [each for each in marks if each]


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Function(seed).write()
