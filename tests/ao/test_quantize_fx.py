"""Quantization of graphs beside PyTorch's: the same observers, the same nodes, the same codes."""

from __future__ import annotations

import copy
import importlib
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.oracle import pytorch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """PyTorch announces the end of this package at every step, and of quantized tensors once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for torch in (flambeau, pytorch):
            if torch is not None:
                torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8)
        yield


def part(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.ao.quantization{name}")


def seen(graph: Any) -> Any:
    """The nodes of a graph, and of which classes its modules are."""
    modules = dict(graph.named_modules(remove_duplicate=False))
    return [
        (
            node.op,
            node.name,
            node.target if isinstance(node.target, str) else getattr(node.target, "__name__", ""),
            repr(node.args).replace("flambeau", "torch"),
            type(modules[node.target]).__name__ if node.op == "call_module" else None,
        )
        for node in graph.graph.nodes
    ]


def network(torch: Any, name: str) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
            self.pool, self.conv2, self.fc = nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.Linear(64, 5)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.relu(self.bn(self.conv(x))))
            return self.fc(torch.flatten(F.relu(x + self.conv2(x)), 1))

    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.act = nn.Linear(8, 16), nn.Linear(16, 8), nn.Sigmoid()

        def forward(self, x: Any) -> Any:
            return torch.cat([self.act(self.b(F.relu(self.a(x)))), x], 1) * 2

    class Functions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.bias = nn.Parameter(torch.randn(6, 8)), nn.Parameter(torch.randn(6))
            self.k, self.b = nn.Parameter(torch.randn(2, 1, 2)), nn.Parameter(torch.randn(2))

        def forward(self, x: Any) -> Any:
            y = F.leaky_relu(F.linear(x, self.w, self.bias), 0.1)
            y = F.relu(F.conv1d(F.hardswish(y).unsqueeze(1), self.k, self.b, 2, 0, 1, 1))
            return F.elu(y.reshape(-1, 3)).mean(1)

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
            self.c2, self.ad, self.l = nn.Conv2d(3, 3, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.LayerNorm(3)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.b1(self.c1(x)) + x)
            y = self.ad(self.c2(y) * self.c2(x))
            return {"o": torch.tanh(self.l(y.view(y.size(0), -1)))}

    class Pieces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.d, self.h = nn.Linear(8, 4), nn.Dropout(0.1), nn.Hardswish()

        def forward(self, x: Any) -> Any:
            a, b = self.h(self.d(self.l(x))).unsqueeze(1).chunk(2, -1)
            return torch.matmul(a.transpose(-1, -2), b).softmax(-1)

    class Sequences(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Sequential(
                nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4), nn.Hardtanh(), nn.AvgPool1d(2)
            )
            self.h = nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.ELU(), nn.Dropout(0.0), nn.Linear(6, 3))

        def forward(self, x: Any) -> Any:
            return self.h(self.f(x).contiguous())

    made, shape = {
        "images": (Images, (2, 3, 8, 8)),
        "rows": (Rows, (3, 8)),
        "functions": (Functions, (3, 8)),
        "residual": (Residual, (2, 3, 5, 5)),
        "pieces": (Pieces, (3, 8)),
        "sequences": (Sequences, (2, 2, 10)),
    }[name]
    torch.manual_seed(0)
    return made(), shape


NETWORKS = ("images", "rows", "functions", "residual", "pieces", "sequences")


def plain(torch: Any, result: Any) -> Any:
    return list(result.values()) if isinstance(result, dict) else result.detach()


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
@differential(tolerance=1e-5)
def test_networks(torch: Any, name: str, trained: bool) -> Any:
    fx, q = part(torch, ".quantize_fx"), part(torch, "")
    model, shape = network(torch, name)
    example = (torch.randn(*shape),)
    if trained:
        mapping = q.get_default_qat_qconfig_mapping("fbgemm")
        prepared = fx.prepare_qat_fx(model.train(), mapping, example)
        optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
        for _ in range(2):
            sum(each.sum() for each in torch.utils._pytree.tree_leaves(prepared(torch.randn(*shape)))).backward()
            optimizer.step()
            optimizer.zero_grad()
        prepared.eval()
    else:
        mapping = q.get_default_qconfig_mapping("fbgemm")
        if name not in ("images", "functions"):  # PyTorch's histograms are slow
            mapping.set_global(q.default_qconfig)
        prepared = fx.prepare_fx(model.eval(), mapping, example)
        for _ in range(2):
            prepared(torch.randn(*shape))
    watched = [
        (key, value.clone()) for key, value in prepared.state_dict().items() if key.endswith(("min_val", "max_val"))
    ]
    before = seen(prepared)
    reference = fx.convert_to_reference_fx(copy.deepcopy(prepared))
    plain(torch, reference(*example))  # in floats: a code may be another where one lies between two
    converted = fx.convert_fx(prepared)
    result = plain(torch, converted(*example))
    code = converted.code.replace("flambeau", "torch")
    return before, watched, seen(reference), seen(converted), result, code


LEFT_ALONE = {
    "images": lambda torch: [torch.flatten, torch.nn.MaxPool2d, torch.nn.Conv2d, torch.nn.functional.relu],
    "rows": lambda torch: [torch.cat, torch.nn.Sigmoid, torch.nn.Linear],
    "functions": lambda torch: [torch.nn.functional.conv1d, torch.nn.functional.elu, "reshape"],
    "residual": lambda torch: [operator.add, operator.mul, torch.nn.AdaptiveAvgPool2d, "view"],
    "pieces": lambda torch: [torch.nn.Hardswish, torch.nn.Dropout, "chunk"],
    "sequences": lambda torch: [torch.nn.Hardtanh, torch.nn.ELU, torch.nn.BatchNorm1d],
}


@pytest.mark.parametrize("name", LEFT_ALONE)
@differential
def test_kinds_that_are_left_alone(torch: Any, name: str) -> Any:
    """What lies between codes takes codes all the same; what was fused is not of the kinds that it was made of."""
    fx, q = part(torch, ".quantize_fx"), part(torch, "")
    warnings.simplefilter("ignore")  # of ranges that are fixed, each in its own words
    observed = []
    for kind in LEFT_ALONE[name](torch):
        model, shape = network(torch, name)
        example = (torch.randn(*shape),)
        mapping = q.QConfigMapping().set_global(q.default_qconfig).set_object_type(kind, None)
        made = outcome(lambda: fx.prepare_fx(model.eval(), mapping, example))  # noqa: B023
        if made[0] == "error":
            observed.append(made)
            continue
        prepared = made[1]
        prepared(*example)
        before, reference = seen(prepared), seen(fx.convert_to_reference_fx(copy.deepcopy(prepared)))
        observed.append((before, reference, seen(fx.convert_fx(prepared))))
    return observed


@differential
def test_codes_run_node_by_node(torch: Any) -> Any:
    """The lists of a graph are of a class of their own; the tensors in them are found."""
    traced = torch.fx.symbolic_trace(lambda x, y: torch.cat([x, y], 1))
    codes = torch.quantize_per_tensor(torch.tensor([[1.0, 2.0]]), 0.5, 3, torch.quint8)
    result = torch.fx.Interpreter(traced).run(codes, codes)
    return result.is_quantized, result.int_repr(), result.q_scale()


@differential(tolerance=1e-5)
def test_scales_found_with_each_input(torch: Any) -> Any:
    fx, q, nn = part(torch, ".quantize_fx"), part(torch, ""), torch.nn
    warnings.simplefilter("ignore")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.r, self.c = nn.Linear(4, 4), nn.LSTM(4, 4), nn.GRUCell(4, 4)
            self.w = nn.Parameter(torch.randn(4, 4))

        def forward(self, x: Any) -> Any:
            y, _ = self.r(nn.functional.relu(self.l(x)))
            return self.c(y[0]) + nn.functional.relu(nn.functional.linear(x, self.w))[0]

    observed = []
    for qconfig in (q.default_dynamic_qconfig, q.float16_dynamic_qconfig):
        torch.manual_seed(0)
        model, x = Model().eval(), torch.randn(2, 3, 4)
        prepared = fx.prepare_fx(model, q.QConfigMapping().set_global(qconfig), (x,))
        before = seen(prepared)
        converted = fx.convert_fx(prepared)
        observed.append((before, seen(converted), converted(x).detach()))
    return observed


@differential(tolerance=1e-6)
def test_tables_of_codes(torch: Any) -> Any:
    fx, q, nn = part(torch, ".quantize_fx"), part(torch, ""), torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.e, self.b = nn.Embedding(10, 8), nn.EmbeddingBag(10, 8)

        def forward(self, i: Any, o: Any) -> Any:
            return self.e(i), self.b(i, o)

    torch.manual_seed(0)
    inputs = (torch.tensor([1, 2, 3]), torch.tensor([0, 1]))
    mapping = q.QConfigMapping().set_global(q.float_qparams_weight_only_qconfig)
    converted = fx.convert_fx(fx.prepare_fx(Model().eval(), mapping, inputs))
    return seen(converted), converted(*inputs)


@differential(tolerance=1e-5)
def test_what_users_say(torch: Any) -> Any:
    """Layers left alone, inputs of codes, attributes that are kept, other configurations by name, class and order."""
    fx, q, custom = part(torch, ".quantize_fx"), part(torch, ""), part(torch, ".fx.custom_config")
    warnings.simplefilter("ignore")
    observed = []
    default = q.get_default_qconfig("fbgemm")
    for mapping in (
        q.get_default_qconfig_mapping("fbgemm").set_module_name("conv2", None),
        q.QConfigMapping().set_global(default).set_object_type(torch.nn.Linear, None),
        q.QConfigMapping().set_module_name_regex("f.*", default),
        q.QConfigMapping().set_global(default).set_module_name_object_type_order("", torch.nn.Linear, 0, None),
        {"": default, "module_name": [("fc", None)]},
    ):
        model, shape = network(torch, "images")
        example = (torch.randn(*shape),)
        prepared = fx.prepare_fx(model.eval(), mapping, example)
        prepared(*example)
        converted = fx.convert_fx(prepared)
        observed.append((seen(converted), converted(*example).detach()))
    given = custom.PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
    given.set_preserved_attributes(["kept"])
    model, shape = network(torch, "rows")
    model.kept = 7
    prepared = fx.prepare_fx(model.eval(), q.get_default_qconfig_mapping("fbgemm"), (torch.randn(*shape),), given)
    prepared(torch.randn(*shape))
    kept = custom.ConvertCustomConfig().set_preserved_attributes(["kept"])
    converted = fx.convert_fx(prepared, kept)
    result = converted(torch.quantize_per_tensor(torch.randn(*shape), 0.1, 100, torch.quint8))
    observed.append((prepared.kept, converted.kept, sorted(prepared.meta), sorted(converted.meta)))
    again = custom.PrepareCustomConfig.from_dict(given.to_dict())
    observed.append((seen(converted), result, given.to_dict(), again.to_dict()))
    taken = q.get_default_qconfig_mapping("fbgemm")
    model, shape = network(torch, "images")
    prepared = fx.prepare_fx(model.eval(), taken, (torch.randn(*shape),))
    prepared(torch.randn(*shape))
    converted = fx.convert_fx(prepared, qconfig_mapping=taken.set_module_name("fc", None))
    observed.append(seen(converted))
    observed.append(outcome(lambda: fx.convert_fx(torch.nn.Linear(1, 1)), "must be a GraphModule"))
    return observed


@differential
def test_fusing_alone(torch: Any) -> Any:
    fx, custom, backends = part(torch, ".quantize_fx"), part(torch, ".fx.custom_config"), part(torch, ".backend_config")
    observed = []
    for name in ("images", "sequences", "residual"):
        model, _ = network(torch, name)
        model.kept = 3
        own = custom.FuseCustomConfig().set_preserved_attributes(["kept"])
        fused = fx.fuse_fx(model.eval(), own)
        observed.append((seen(fused), fused.kept, own.to_dict(), custom.FuseCustomConfig.from_dict(own.to_dict()).to_dict()))  # noqa: E501  # fmt: skip
    model, _ = network(torch, "images")
    observed.append(seen(fx.fuse_fx(model.eval(), backend_config=backends.get_onednn_backend_config())))
    model, _ = network(torch, "residual")
    with_sum = fx.fuse_fx(model.eval(), backend_config=backends.get_onednn_backend_config())
    observed.append(seen(with_sum))
    return observed


@differential(tolerance=1e-5)
def test_modules_of_ones_own(torch: Any) -> Any:
    fx, q, custom, nn = part(torch, ".quantize_fx"), part(torch, ""), part(torch, ".fx.custom_config"), torch.nn

    class Float(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    class Observed(nn.Module):
        def __init__(self, linear: Any) -> None:
            super().__init__()
            self.linear = linear

        def forward(self, x: Any) -> Any:
            return self.linear(x)

        @classmethod
        def from_float(cls, module: Any) -> Any:
            made = cls(module.linear)
            made.qconfig = module.qconfig
            return made

    class Quantized(nn.Module):
        def __init__(self, linear: Any) -> None:
            super().__init__()
            self.linear = linear

        def forward(self, x: Any) -> Any:
            return self.linear(x)

        @classmethod
        def from_observed(cls, module: Any) -> Any:
            module.linear.qconfig = module.qconfig
            module.linear.activation_post_process = module.activation_post_process
            return cls(torch.ao.nn.quantized.Linear.from_float(module.linear))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.own, self.apart = nn.Linear(3, 3), Float(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())

        def forward(self, x: Any) -> Any:
            return self.apart(self.own(self.first(x)))

    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(4, 3)
    mapping = q.QConfigMapping().set_global(q.get_default_qconfig("fbgemm"))
    given = custom.PrepareCustomConfig().set_float_to_observed_mapping(Float, Observed)
    given.set_standalone_module_name("apart", None, (x,), None, None)
    prepared = fx.prepare_fx(model, mapping, (x,), given)
    prepared(x)
    own = custom.ConvertCustomConfig().set_observed_to_quantized_mapping(Observed, Quantized)
    converted = fx.convert_fx(prepared, own)
    names = (sorted(own.to_dict()), sorted(given.to_dict()), custom.ConvertCustomConfig.from_dict(own.to_dict()).to_dict() == own.to_dict())  # noqa: E501  # fmt: skip
    refused = outcome(lambda: given.set_float_to_observed_mapping(Float, Observed, q.QuantType.DYNAMIC), "static")
    return [each[:4] for each in seen(converted)], seen(converted.apart), converted(x), names, refused


@differential
def test_questions_about_nodes(torch: Any) -> Any:
    utils, fx = part(torch, ".fx.utils"), torch.fx
    nn, F = torch.nn, torch.nn.functional

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.linear = nn.Parameter(torch.ones(2, 2)), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            y = F.linear(x, self.w.t() + 1)
            return self.linear(F.relu(y)).view(x.shape[0], x.size(1)).masked_fill(x > 0, 1.0)

    traced = fx.symbolic_trace(Model())
    nodes = {node.name: node for node in traced.graph.nodes}
    modules = dict(traced.named_modules())
    made = utils.collect_producer_nodes(nodes["add"])
    names = [node.name for node in made]
    inner = utils.graph_module_from_producer_nodes(traced, made)
    value = utils.create_getattr_from_value(traced, traced.graph, "some.scale_", 0.5)
    name = utils.get_new_attr_name_with_prefix("some.scale_")(traced)
    graph = fx.Graph()
    first = graph.placeholder("x")
    copied = utils.create_node_from_old_node_preserve_meta(
        graph, ("call_function", torch.relu, (first,)), nodes["relu"]
    )
    kinds = {
        node.name: sorted(
            (str(kind).replace("flambeau", "torch"), positions(node))
            for kind, positions in utils.get_non_observable_arg_indexes_and_types(node).items()
        )
        for node in nodes.values()
    }
    quant = part(torch, "").QuantType
    return (
        names,
        utils.collect_producer_nodes(nodes["linear"]),
        inner().detach(),
        (value.target, name, getattr(traced, value.target)),
        (copied.name, copied.args[0].name),
        kinds,
        utils.all_node_args_except_first(nodes["view"]),
        utils.return_arg_list([0, 1, 5])(nodes["view"]),
        {name: utils.all_node_args_have_no_tensors(node, modules, {}) for name, node in nodes.items() if node.op != "output"},  # noqa: E501
        str(utils.assert_and_get_unique_device(traced)),
        utils.maybe_get_next_module(nodes["relu"], modules, nn.Linear).name,
        utils.maybe_get_next_module(nodes["linear"], modules, None, F.relu).name,
        utils.maybe_get_next_module(nodes["relu"], modules, nn.Conv2d),
        sorted(map(str, utils.get_custom_module_class_keys({quant.STATIC: {int: str}, quant.DYNAMIC: {float: str}}))),
        sorted(getattr(each, "__name__", "") for each in utils.NON_QUANTIZABLE_WEIGHT_OPS),
        len(utils.NON_OBSERVABLE_ARG_DICT),
        utils.EMPTY_ARG_DICT,
    )  # fmt: skip


@differential
def test_weights_and_biases_of_prepared_functions(torch: Any) -> Any:
    fx, q, utils = part(torch, ".quantize_fx"), part(torch, ""), part(torch, ".fx.utils")
    model, shape = network(torch, "functions")
    prepared = fx.prepare_fx(model.eval(), q.get_default_qconfig_mapping("fbgemm"), (torch.randn(*shape),))
    linear = next(node for node in prepared.graph.nodes if node.name == "linear")
    weights = [utils.node_arg_is_weight(linear, each) for each in linear.args]
    handlers = part(torch, ".fx.quantize_handler")
    handler = handlers.DefaultNodeQuantizeHandler(linear, dict(prepared.named_modules()))
    patterns = part(torch, ".fx.pattern_utils")
    return (
        weights,
        [utils.node_arg_is_bias(linear, each) for each in linear.args],
        (handler.is_custom_module(), handler.is_standalone_module(), handler.is_general_tensor_value_op()),
        handler.root_node.name,
        patterns.get_default_fusion_patterns(),
        issubclass(handlers.CatQuantizeHandler, handlers.QuantizeHandler),
    )


@differential
def test_inputs_of_all_parts(torch: Any) -> Any:
    nn = torch.nn

    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 3

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.linear = Inner(), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.linear(self.inner(x))

    return part(torch, ".utils").get_fqn_to_example_inputs(Model(), (torch.ones(1, 2),))


@differential
def test_several_configurations(torch: Any) -> Any:
    multi = importlib.import_module(f"{torch.__name__}.ao.ns.fx.qconfig_multi_mapping").QConfigMultiMapping
    q = part(torch, "")
    first, second = q.default_qconfig, q.default_dynamic_qconfig
    made = multi().set_global([first, second]).set_object_type(torch.nn.Linear, [first])
    made.set_module_name_regex("a.*", [second, first]).set_module_name("b", [None])
    made.set_module_name_object_type_order("c", torch.nn.Linear, 0, [first, second, None])

    known = {str(each): name for each, name in ((None, "none"), (first, "first"), (second, "second"))}

    def said(own: Any) -> Any:
        return [
            [
                known[str(rows)] if not key else [(*map(str, row[:-1]), known[str(row[-1])]) for row in rows]
                for key, rows in mapping.to_dict().items()
            ]
            for mapping in own.qconfig_mappings_list
        ]

    mappings = [q.QConfigMapping().set_global(first).set_module_name("a", second), q.QConfigMapping()]
    return repr((said(made), said(multi.from_list_qconfig_mapping(mappings)))).replace("flambeau", "torch")


@differential(tolerance=1e-6)
def test_functions_of_codes(torch: Any) -> Any:
    ops, F = torch.ops.quantized, torch.nn.functional
    torch.manual_seed(1)
    a, b = (torch.quantize_per_tensor(torch.randn(2, 4, 6), 0.05, 100, torch.quint8) for _ in range(2))
    weight = torch.quantize_per_tensor(torch.randn(4, 4, 3), 0.05, 0, torch.qint8)
    packed = ops.conv1d_prepack(weight, torch.randn(4), [1], [1], [1], 1)
    matrix = torch.quantize_per_tensor(torch.randn(5, 6), 0.05, 0, torch.qint8)
    linear = ops.linear_prepack(matrix, torch.randn(5))
    results = [
        ops.add(a, b, 0.1, 120), ops.add_relu(a, b, 0.1, 20), ops.mul(a, b, 0.11, 120), ops.mul(a, 3.0),
        ops.add(a, 0.5), ops.matmul(a, b.transpose(1, 2), 0.2, 120), ops.cat([a, b], 1, 0.1, 100),
        ops.hardswish(a, 0.1, 20), ops.leaky_relu(a, 0.2, False, 0.1, 20), ops.elu(a, 0.1, 20, 1.5),
        ops.celu(a, 0.1, 20, 1.5), ops.linear(a, linear, 0.2, 100), ops.linear_relu(a, linear, 0.2, 10),
        ops.linear_dynamic(a.dequantize(), linear, True), ops.conv1d(a, packed, 0.2, 100),
        ops.conv1d_relu(a, packed, 0.2, 10), ops.layer_norm(a, [6], torch.ones(6), torch.zeros(6), 1e-5, 0.1, 100),
        F.relu(a),
    ]  # fmt: skip
    return [(each.int_repr(), each.q_scale(), each.q_zero_point()) if each.is_quantized else each for each in results]
