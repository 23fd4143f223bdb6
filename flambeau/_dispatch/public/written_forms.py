"""Parameters of public functions that PyTorch writes in Python, as schemas: they look at types as operators do."""

from __future__ import annotations

WRITTEN: dict[str, str] = {
    "_sparse_sum": "Tensor input, int[1]? dim=None, ScalarType? dtype=None",
    "as_tensor": "Any data, ScalarType? dtype=None, Device? device=None",
    "asarray": ("Any obj, *, ScalarType? dtype=None, Device? device=None, bool? copy=None, bool? requires_grad=None"),
    "frombuffer": "Any buffer, *, ScalarType dtype, int count=None, int offset=None, bool requires_grad=None",
    "grid_sample": "Tensor input, Tensor grid, Any mode=None, Any padding_mode=None, bool? align_corners=None",
    "lp_pool1d": "Tensor input, Any norm_type, int[1] kernel_size, int[1]? stride=None, bool ceil_mode=None",
    "lp_pool2d": "Tensor input, Any norm_type, int[2] kernel_size, int[2]? stride=None, bool ceil_mode=None",
    "lp_pool3d": "Tensor input, Any norm_type, int[3] kernel_size, int[3]? stride=None, bool ceil_mode=None",
    "lu": "Tensor A, bool pivot=None, Any get_infos=None",
    "meshgrid": "Tensor[] tensors, *, str? indexing=None",
    "nn.functional.affine_grid": "Tensor theta, Any size, bool? align_corners=None",
    "nn.functional.alpha_dropout": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.cross_entropy": (
        "Tensor input, Tensor target, Tensor? weight=None, Any size_average=None, int ignore_index=None, "
        "Any reduce=None, Any reduction=None, float label_smoothing=None"
    ),
    "nn.functional.dropout": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.dropout1d": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.dropout2d": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.dropout3d": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.embedding_bag": (
        "Tensor input, Tensor weight, Tensor? offsets=None, Any max_norm=None, Any norm_type=None, "
        "bool scale_grad_by_freq=None, Any mode=None, bool sparse=None, Tensor? per_sample_weights=None, "
        "bool include_last_offset=None, int? padding_idx=None"
    ),
    "nn.functional.feature_alpha_dropout": "Tensor input, Any p=None, bool training=None, Any inplace=None",
    "nn.functional.interpolate": (
        "Tensor input, Any size=None, Any scale_factor=None, Any mode=None, Any align_corners=None"
    ),
    "nn.functional.multi_margin_loss": (
        "Tensor input, Tensor target, Any p=None, Scalar margin=None, Tensor? weight=None"
    ),
    "nonzero": "Tensor input, *, bool as_tuple=None",
    "numpy": "Tensor input, *, bool force=None",
    "pack_padded_sequence": "Tensor input, Any lengths, bool batch_first=None",
    "pad_sequence": "Any sequences, bool batch_first=None, float padding_value=None, str padding_side=None",
    "stft": (
        "Tensor input, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
        "Any center=None, str pad_mode=None, bool normalized=None, bool? onesided=None, "
        "bool? return_complex=None"
    ),
    "tensor": (
        "Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=None, bool pin_memory=None"
    ),
    "unique": "Tensor input, bool sorted=None, bool return_inverse=None, bool return_counts=None, int? dim=None",
    "unique_consecutive": "Tensor input, bool return_inverse=None, bool return_counts=None, int? dim=None",
}
"""Functions that have no schema, but look at the types of some arguments as if they had."""
