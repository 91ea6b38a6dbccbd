"""Operations without a batching rule: ``vmap`` runs them once for each row, and says so once.

The names are those of torch 2.13's functions whose operator has a kernel for neither of the
dispatcher's keys FuncTorchBatched and FuncTorchBatchedDecomposition and that therefore take
functorch's fallback, a loop (aten/src/ATen/functorch/BatchedFallback.cpp). Each is run under
``vmap`` by a test, which fails when a torch release has a rule for it.
"""

from __future__ import annotations

# Functions of torch that are methods of its tensors too.
_OF_TENSORS = (
    "bincount", "diagflat", "histc", "index_reduce", "isclose", "istft", "lu_solve",
    "masked_scatter", "nanquantile", "nonzero_static", "put", "quantile", "renorm",
    "repeat_interleave", "stft", "take",
)  # fmt: skip
_OF_TORCH = ("histogram", "isin", "segment_reduce", "vander")
_OF_LINALG = ("ldl_solve", "lu")
_LOSSES = (
    "kl_div", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss", "pdist",
    "soft_margin_loss", "triplet_margin_loss",
)  # fmt: skip
_OF_FUNCTIONAL = (*_LOSSES, "affine_grid", "max_unpool1d", "max_unpool2d", "max_unpool3d")
_OF_SPECIAL = ("airy_ai", "log_ndtr", "chebyshev_polynomial_t", "hermite_polynomial_h")

ROW_BY_ROW_METHODS = frozenset(_OF_TENSORS)
ROW_BY_ROW = frozenset((
    *(f"torch.{name}" for name in (*_OF_TENSORS, *_OF_TORCH, "pdist")),
    *(f"torch.linalg.{name}" for name in _OF_LINALG),
    *(f"torch.nn.functional.{name}" for name in _OF_FUNCTIONAL),
    *(f"torch.special.{name}" for name in _OF_SPECIAL),
))  # fmt: skip
# Functions with a rule if the repeated tensor is batched and the number of repeats is one number.
REPEATED = frozenset(("torch.repeat_interleave",))
