"""Matrices with two zeros in every four, under the names of `torch.sparse.semi_structured`: they are CUDA's."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "matrices of this kind are for CUDA devices, and there are none",
        functions="to_sparse_semi_structured",
        classes="SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS",
    )
    .parts()
)
