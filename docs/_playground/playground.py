"""The Python half of the playground: runs examples, records a backward pass step by step, trains on the digits."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import sys
import textwrap
import traceback
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._core.text.graph_svg import graph_nodes, graph_svg


def run(code: str) -> str:
    """Run a program; what it prints, and the value of its last line if that is an expression."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            _run_in(code, namespace)
        except Exception:
            printed.write(traceback.format_exc(limit=-1))
    return printed.getvalue()


def _run_in(code: str, namespace: dict[str, Any]) -> None:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<example>", "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "<example>", "eval"), namespace)
        if value is not None:
            sys.stdout.write(f"{value!r}\n")


def backward_steps(code: str) -> str:
    """Run a program that defines `loss`, then its backward pass; as JSON the graph and what each node did."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(code, "<example>", "exec"), namespace)
        root = namespace["loss"].grad_fn
        picture = graph_svg(root)
        steps: list[dict[str, Any]] = []
        for position, node in enumerate(graph_nodes(root)):
            node.register_hook(_recorder(steps, node, position))
        namespace["loss"].backward()
    except Exception:
        return json.dumps({"error": traceback.format_exc(limit=-1)})
    return json.dumps({"svg": picture, "steps": steps})


def _recorder(steps: list[dict[str, Any]], node: Any, position: int) -> Any:
    def record(grad_inputs: Any, grad_outputs: Any) -> None:
        steps.append(
            {
                "box": position,
                "name": node.name().rpartition("::")[2],
                "arrives": [_shown(each) for each in grad_outputs if each is not None],
                "leaves": [_shown(each) for each in grad_inputs if each is not None],
                "source": _source(node),
            }
        )

    return record


def _shown(tensor: Any) -> str:
    return str(tensor.detach()).removeprefix("tensor(").removesuffix(")")


def _source(node: Any) -> str:
    """The lines of the package that compute a node's derivatives."""
    formulas = getattr(node, "formulas", None)
    if not formulas:
        return "adds the gradient to .grad of the leaf"
    found = []
    for function, _ in formulas:
        lines, number = inspect.getsourcelines(function)
        place = inspect.getsourcefile(function) or ""
        text = textwrap.dedent("".join(lines)).strip()
        found.append(f"{place[place.find('flambeau/') :]}:{number}\n{text}")
    return "\n".join(dict.fromkeys(found))


class Training:
    """A small convolutional network, trained on handwritten digits a few steps at a time."""

    def __init__(self, file: str) -> None:
        with np.load(file) as arrays:
            images, labels = arrays["train_images"], arrays["train_labels"]
            self.test = self._tensors(arrays["test_images"][:200], arrays["test_labels"][:200])
        self.images, self.labels = self._tensors(images, labels)
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.Linear(16 * 6 * 6, 10),
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.order = torch.randperm(len(self.images))
        self.done = 0

    @staticmethod
    def _tensors(images: Any, labels: Any) -> tuple[Any, Any]:
        return torch.from_numpy(images).float().unsqueeze(1) / 255, torch.from_numpy(labels).long()

    def steps(self, count: int, size: int = 40) -> str:
        """Train on some batches; as JSON their losses, and the accuracy on digits that the network has not seen."""
        losses = []
        for _ in range(count):
            start = self.done * size % (len(self.images) - size)
            chosen = self.order[start : start + size]
            loss = torch.nn.functional.cross_entropy(self.model(self.images[chosen]), self.labels[chosen])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            self.done += 1
        images, labels = self.test
        with torch.no_grad():
            right = (self.model(images).argmax(1) == labels).float().mean().item()
        return json.dumps({"losses": losses, "accuracy": right, "done": self.done})
