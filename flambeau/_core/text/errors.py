"""Texts of the errors that several places raise. Each begins as PyTorch's does, because people search for that."""

from __future__ import annotations

KEEP_GRAPH = (
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need them afterwards."
)
GRAPH_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    f"freed). {KEEP_GRAPH}"
)
INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)
INFERENCE_INPLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
    "tensor before doing inplace update."
)
INFERENCE_VERSION = "Inference tensors do not track version counter."
LEAF_INPLACE = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW_INPLACE = "a view of a leaf Variable that requires grad is being used in an in-place operation."
