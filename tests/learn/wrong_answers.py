"""Typical wrong answers to the exercises: what to replace in the solution, and words of the advice."""

from __future__ import annotations

WRONG: dict[str, list[tuple[str, str, str]]] = {
    "op": [
        (
            "(x + np.sqrt(x * x + 4)) / 2",
            "x + np.sqrt(x * x + 4)",
            "twice as much",
        ),
        (
            "np.sqrt(",
            "__import__('math').sqrt(",
            "np.sqrt in place of math.sqrt",
        ),
        (
            "    return (x",
            "    if x < 0:\n        return 0 * x\n    return (x",
            "np.where in place of `if`",
        ),
        (
            "rule=FLOATING",
            "rule='same'",
            "FLOATING",
        ),
        (
            "    return (x + np.sqrt(x * x + 4)) / 2",
            "    x += np.sqrt(x * x + 4)\n    x /= 2\n    return x",
            "changes its argument",
        ),
        (
            'unary("squareplus"',
            'unary("square_plus"',
            'knows no op "squareplus"',
        ),
        (
            "np.sqrt(x * x + 4)",
            "np.sqrt(x * x) + 4",
            "squareplus(-3.0) is 0.3028",
        ),
    ],
    "derivative": [
        (
            "-grad * result",
            "grad * result",
            "sign is wrong",
        ),
        (
            "-grad * result",
            "-result",
            "chain rule",
        ),
        (
            "grad * (-other).exp()",
            "grad * np.exp(-other)",
            "not np.exp",
        ),
        (
            "grad * (-other).exp()",
            "grad * (-other).exp().detach()",
            "cut off from the graph",
        ),
        (
            "return -grad * result",
            "return grad.neg_().mul_(result)",
            "in place",
        ),
        (
            'grad: Any, result: Any) -> Any:\n    """The gradient of rate."""\n    return -grad * result',
            "grad: Any, self: Any, other: Any) -> Any:\n    return -grad * self * (-other).exp()",
            "keeps x",
        ),
        (
            "return -grad * result",
            "return (-grad * result).sum()",
            "invalid gradient",
        ),
    ],
    "strides": [
        (
            "shape[-1] - size + 1",
            "shape[-1] - size",
            "3 windows of 3",
        ),
        (
            "(*strides, strides[-1])",
            "(*strides, 4)",
            "do not assume 4 bytes",
        ),
        (
            "(*strides, strides[-1])",
            "(*strides[:-1], strides[-1] * size, strides[-1])",
            "out of bounds",
        ),
        (
            "(*strides, strides[-1])",
            "(strides[-1], *strides)",
            "earlier dimensions keep theirs",
        ),
        (
            "return np.lib.stride_tricks.as_strided(self, *window_geometry(self.shape, self.strides, size))",
            "return np.array(np.lib.stride_tricks.as_strided(self, *window_geometry(self.shape, self.strides, size)))",
            "a copy",
        ),
        (
            "total[..., position : position + grad.shape[-2]] + grad[..., position]",
            "grad[..., position]",
            "add them",
        ),
        (
            ", view=True",
            "",
            "view=True",
        ),
    ],
    "backward": [
        (
            "place[number] + value if number in place else value",
            "value",
            "gradients add up",
        ),
        (
            "            if expected[target] == 0:\n",
            "            if target not in ready:\n",
            "gradients add up",
        ),
        (
            "place[number] + value if number in place else value",
            (
                "value if number not in place else place[number] + value + 0 * number\n"
                "                place[0] = place[number]"
            ),
            "says which result",
        ),
        (
            "                value = value.sum_to_size(target.outputs[number][0])\n",
            "",
            "sum gradients to",
        ),
        (
            "            if target is None:\n                continue\n",
            "",
            "skipped",
        ),
        (
            "    expected = _count(result.grad_fn)\n",
            (
                "    if True:\n"
                "        leaves = {}\n"
                "        def visit(node, number, value):\n"
                "            if node is None or value is None:\n"
                "                return\n"
                "            value = value.sum_to_size(node.outputs[number][0])\n"
                '            if node.name().endswith("AccumulateGrad"):\n'
                "                leaves[node.variable] = leaves[node.variable] + value if node.variable in "
                "leaves else value\n"
                "                return\n"
                "            results = node(*[value if at == number else None for at in "
                "range(len(node.outputs))])\n"
                "            for (target, at), each in zip(node.next_functions, results if isinstance(results, "
                "tuple) else (results,)):\n"
                "                visit(target, at, each)\n"
                "        visit(result.grad_fn, result.output_nr, grad)\n"
                "        return leaves\n"
                "    expected = _count(result.grad_fn)\n"
            ),
            "once for each path",
        ),
    ],
    "optimizer": [
        (
            ".sign()",
            "",
            "Only the sign",
        ),
        (
            "            param.sub_(lr *",
            "            param = param - (lr *",
            "in place",
        ),
        (
            "            param.mul_(1 - lr * decay)\n",
            "            grad = grad + decay * param\n",
            "vanish in the sign",
        ),
        (
            "            momentum.mul_(second).add_((1 - second) * grad)\n",
            "",
            "After three steps",
        ),
        (
            'group["lr"], group["betas"]',
            'self.defaults["lr"], group["betas"]',
            'group["lr"]',
        ),
        (
            '[each["momentum"] for each in states]',
            "self.__dict__.setdefault('kept', {}).setdefault(id(group), [torch.zeros_like(each) for each in params])",
            "not in it",
        ),
        (
            '{"momentum":',
            '{"m":',
            "under the name that _update looks for",
        ),
    ],
    "checkpoint": [
        (
            '"<Q"',
            '">Q"',
            "little-endian",
        ),
        (
            "data[8 + length :]",
            "data",
            "end of the header",
        ),
        (
            ".reshape(shape)",
            "",
            "has shape",
        ),
        (
            "DTYPES[dtype]).reshape",
            "torch.float32).reshape",
            "is in the header",
        ),
        (
            "bytearray(data[8 + length :])",
            "data[8 + length :]",
            "cannot be changed",
        ),
        (
            '    header.pop("__metadata__", None)\n',
            "",
            "skip it",
        ),
        (
            " or end - begin != math.prod(shape) * DTYPES[dtype].itemsize",
            "",
            "a ValueError with a reason",
        ),
        (
            "    if begin == end:\n        return torch.empty(shape, dtype=DTYPES[dtype])\n",
            "",
            "has no bytes",
        ),
    ],
    "kernel": [
        (
            "c.load(out_, scalar, position, lanes) + difference * difference * factor_",
            "difference * difference * factor_",
            "added to",
        ),
        (
            " * factor_\n",
            "\n",
            "factor is missing",
        ),
        (
            "for position, lanes in c.lanes(begin, end, 16):",
            "for position, lanes in c.lanes(c.integer(0), end, 16):",
            "second time",
        ),
        (
            "c.lanes(begin, end, 16)",
            "c.lanes(begin, begin + (end - begin) // 16 * 16, 16)",
            "left over",
        ),
        (
            "            c.store(out_, scalar, position, total)\n",
            "",
            "stores nothing",
        ),
        (
            "c.store(out_, scalar",
            "c.store(x_, scalar",
            "out_ alone",
        ),
        (
            "difference * difference * factor_",
            "difference * difference * factor",
            "belong to another function",
        ),
        (
            "difference * difference * factor_",
            "difference * factor_",
            "(x - y) ** 2",
        ),
    ],
    "capture": [
        (
            "        self.calls.append((op, noted, self.noted(result)))\n        return result",
            "        self.calls.append((op, noted, self.noted(result)))",
            "must return",
        ),
        (
            "        noted = self.noted(tuple(args))\n",
            "        noted = tuple(args)\n",
            "result for the old ones",
        ),
        (
            "return type(value)([self.noted(each) for each in value]) if type(value) in (list, tuple) else value",
            (
                "return tuple([self.noted(each) if isinstance(each, torch.Tensor) else each for each in value]) "
                "if type(value) is tuple else value"
            ),
            "list of tensors",
        ),
        (
            "            self.tensors.append(tensor)  # kept, or another array could get its address",
            "            self.tensors.append(tensor.clone())",
            "keep the tensor",
        ),
        (
            "    elif type(places) in (list, tuple):",
            "    elif type(places) is list:",
            "topk",
        ),
        (
            "            _put(tensors, results, op(*_filled(tensors, args)))\n",
            "            op(*_filled(tensors, args))\n",
            "result for the old ones",
        ),
        (
            "        self.recorder = recorder\n",
            (
                "        self.recorder = recorder\n"
                "        recorder.tensors = [each.clone() for each in recorder.tensors]\n"
            ),
            "keep the tensor",
        ),
    ],
    "collective": [
        (
            "    for step in range(size - 1):\n        arrived = _pass_on(pieces[(rank + 1",
            "    for step in range(0):\n        arrived = _pass_on(pieces[(rank + 1",
            "second round",
        ),
        (
            "        pieces[(rank - step - 1) % size].add_(arrived)\n",
            "        pieces[(rank - step - 1) % size] + arrived\n",
            "must expect",
        ),
        (
            "    pieces = tensor.tensor_split(size)\n",
            "    pieces = tensor.clone().tensor_split(size)\n",
            "in place",
        ),
        (
            "    rank, size = dist.get_rank(), dist.get_world_size()\n",
            "    dist.all_reduce(tensor)\n    return\n    rank, size = dist.get_rank(), dist.get_world_size()\n",
            "ready-made",
        ),
        (
            "    pieces = tensor.tensor_split(size)\n",
            (
                "    total = tensor.clone()\n"
                "    for step in range(size - 1):\n"
                "        total += _pass_on(tensor, tensor, rank, size) if not step else 0\n"
                "        moving = _pass_on(tensor, tensor, rank, size) if not step else _pass_on(moving, "
                "tensor, rank, size)\n"
                "        total += moving if step else 0\n"
                "    tensor.copy_(total)\n"
                "    return\n"
                "    pieces = tensor.tensor_split(size)\n"
            ),
            "a ring needs",
        ),
        (
            "pieces[(rank - step) % size], pieces[(rank - step - 1) % size], rank, size)",
            "pieces[rank], pieces[rank - 1], rank, size)",
            "in step s",
        ),
        (
            "tensor.tensor_split(size)",
            "[tensor[i * (len(tensor) // size) : (i + 1) * (len(tensor) // size)] for i in range(size)]",
            "elements",
        ),
    ],
}
