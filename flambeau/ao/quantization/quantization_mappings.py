"""Which class of modules takes the place of which."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from ... import nn
from ...nn import functional as F
from ...nn.modules.linear import NonDynamicallyQuantizableLinear
from ..nn import intrinsic as nni
from ..nn import qat as nnqat
from ..nn import quantizable
from ..nn import quantized as nnq
from ..nn.intrinsic import qat as nniqat
from ..nn.intrinsic import quantized as nniq
from ..nn.intrinsic.quantized import dynamic as nniqd
from ..nn.qat import dynamic as nnqatd
from ..nn.quantized import dynamic as nnqd
from ..nn.quantized import functional as qF
from ..nn.quantized import reference as nnqr
from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub

sparse: Any = import_module("flambeau.ao.nn.sparse.quantized")  # it has no file

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS", "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings", "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings", "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings", "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings", "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings", "get_quantized_operator",
    "get_static_quant_module_class", "no_observer_set",
]  # fmt: skip

Mapping = dict[Any, Any]


def _same_names(target: Any, names: str, source: Any = nn) -> Mapping:
    """From the classes of one namespace to those of the same name in another."""
    return {getattr(source, name): getattr(target, name) for name in names.split()}


_CONVOLUTIONS = "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
_STUBS: Mapping = {QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize}

DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_STUBS,
    **_same_names(nnqr, f"Linear {_CONVOLUTIONS} Embedding EmbeddingBag GRUCell LSTMCell RNNCell LSTM"),
}
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_STUBS,
    **_same_names(nnq, f"BatchNorm2d BatchNorm3d Dropout {_CONVOLUTIONS} ELU Embedding EmbeddingBag GroupNorm"),
    **_same_names(nnq, "Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU"),
    NonDynamicallyQuantizableLinear: nnq.Linear,
    nnq.FloatFunctional: nnq.QFunctional,
    **_same_names(nniq, "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU", nni),
    **_same_names(nniq, "LinearLeakyReLU LinearTanh", nni),
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.LinearBn1d: nnq.Linear,
    **_same_names(nniq, "ConvReLU2d ConvReLU3d LinearReLU", nniqat),
    **_same_names(nnq, "Linear Conv2d Conv3d", nnqat),
}
DEFAULT_QAT_MODULE_MAPPINGS: Mapping = {
    **_same_names(nnqat, "Conv2d Conv3d Linear"),
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    **_same_names(nniqat, "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d", nni),
    **_same_names(nniqat, "ConvReLU3d LinearReLU LinearBn1d", nni),
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **_same_names(nnqd, "GRUCell Linear LSTM GRU LSTMCell RNNCell"),
    nnqatd.Linear: nnqd.Linear,
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nni.LinearReLU: nniqd.LinearReLU,
    **_same_names(nnq, "EmbeddingBag Embedding"),
}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: Mapping = {
    F.elu: qF.elu,
    F.hardswish: qF.hardswish,
    F.leaky_relu: qF.leaky_relu,
}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: Mapping = {
    **dict.fromkeys((nn.Hardsigmoid, nn.Sigmoid, nn.Softmax), default_fixed_qparams_range_0to1_fake_quant),
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}
DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS: Mapping = {nn.Linear: sparse.Linear}
DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS: Mapping = {nn.Linear: sparse.dynamic.Linear}


def no_observer_set() -> set[Any]:
    """Classes of modules that watch by themselves."""
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def _copy_of(name: str) -> Mapping:
    return dict(globals()[name])


get_default_static_quant_module_mappings = functools.partial(_copy_of, "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS")
get_default_static_quant_reference_module_mappings = functools.partial(
    _copy_of, "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS"
)
get_default_static_sparse_quant_module_mappings = functools.partial(
    _copy_of, "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS"
)
get_default_qat_module_mappings = functools.partial(_copy_of, "DEFAULT_QAT_MODULE_MAPPINGS")
get_default_dynamic_quant_module_mappings = functools.partial(_copy_of, "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS")
get_default_dynamic_sparse_quant_module_mappings = functools.partial(
    _copy_of, "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS"
)
get_default_float_to_quantized_operator_mappings = functools.partial(
    _copy_of, "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS"
)


def get_embedding_static_quant_module_mappings() -> Mapping:
    """The mapping for trained models with that of embeddings."""
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **_same_names(nnq, "EmbeddingBag Embedding", nnqat)}


def get_embedding_qat_module_mappings() -> Mapping:
    """The mapping for training with that of embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, **_same_names(nnqat, "EmbeddingBag Embedding")}


def _class_for(kind: Any, mapping: Mapping, further: Mapping | None) -> Any:
    found = {**mapping, **(further or {})}.get(kind)
    if found is None:
        raise AssertionError(f"Floating point module class {kind} does not have a corresponding quantized module class")
    return found


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Mapping | None = None, is_reference: bool = False
) -> Any:
    """The class that takes the place of a module's in a quantized model."""
    references = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
    mapping = references if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _class_for(float_module_class, mapping, additional_static_quant_mapping)


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Mapping | None = None
) -> Any:
    """The class that takes the place of a module's where inputs are quantized as they come."""
    return _class_for(float_module_class, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The classes of modules that get observers."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        nn.Sequential,
    }


def get_default_compare_output_module_list() -> set[Any]:
    """The classes of modules, quantized or not, whose outputs are compared."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return get_default_qconfig_propagation_list().union(*(mapping.values() for mapping in mappings))


def get_quantized_operator(float_op: Any) -> Any:
    """The function of quantized tensors for one of floats."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found
