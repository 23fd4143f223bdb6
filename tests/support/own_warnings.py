"""Warnings that only one of the two libraries has cause to give; all others are compared in every differential test."""

from __future__ import annotations

OWN_REASONS = {
    "FutureWarning: return_lse is deprecated and": "PyTorch gives it once in a process, whatever was asked for",
    "UserWarning: Attempted to insert a": "about a graph that PyTorch makes of the function",
    "UserWarning: ComplexHalf support is experimental": "PyTorch says it of results too",
    "UserWarning: Creating a tensor from": "a list of arrays: it is slow in PyTorch, not here",
    "UserWarning: LSTM with projections is": "about a library that PyTorch uses",
    "UserWarning: Sparse invariant checks are": "PyTorch gives it once in a process; indices are always checked here",
    "UserWarning: TF32 acceleration on top": "about a library of other processors, whenever its flags are set",
    "UserWarning: The PyTorch API of": "PyTorch's encoder makes nested tensors of padded ones, and they are new",
    "UserWarning: Warning: Profiler clears events": "PyTorch gives it once in a process, whatever was asked for",
    "UserWarning: flex_attention called without torch.compile()": "it is slow in PyTorch then, not here",
}
"""Beginnings of warnings, by which they are known, with the reason."""

OWN_REASONS_IN = {
    "test_choice_of_kernels": {
        "UserWarning: Both fused kernels do": "each kernel of PyTorch says why it does not take the arguments",
        "UserWarning: Flash attention kernel not": "each kernel of PyTorch says why it does not take the arguments",
    },
    "test_in_place_results_must_fit": {
        "UserWarning: Casting complex values to": "PyTorch casts what a comparison gave, which has no imaginary part",
    },
    "test_rejection_samplers": {
        "UserWarning: An output with one": "of a tensor inside PyTorch's binomial, not of one that a caller has",
    },
    "test_vector_norms": {
        "UserWarning: Casting complex values to": "PyTorch casts the number of elements, which has no imaginary part",
    },
}
"""The same for single tests, of warnings that are compared elsewhere."""
