"""A few of the largest or smallest eigenvalues of a symmetric matrix, found by products with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.dtype import float32, float64
from ..._core.tensor import Tensor
from ..._dispatch.gradients.needed import needs_gradient
from ..._dispatch.public.registry import public
from ..random.draws import randn
from ..shape.join import cat, stack
from .decompose import eigh


class LOBPCG:
    """The state of an iteration, which a `tracker` may look at after each step.

    The space that is searched is spanned by the present vectors, the residuals that a preconditioner has changed, and
    the direction of the last step.
    """

    def __init__(
        self, A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, iparams: dict[str, int],
        fparams: dict[str, float], bparams: dict[str, bool], method: str, tracker: Callable[[Any], None] | None,
    ) -> None:  # fmt: skip
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams, self.method, self.tracker = iparams, fparams, bparams, method, tracker
        self.E = X.new_zeros(X.shape[-1])
        self.R = X.new_zeros(X.shape)
        self.S = X.new_zeros((X.shape[0], 3 * X.shape[1]))
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0, "iterations_left": iparams["niter"]}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}

    def run(self) -> None:
        """Step until all pairs have converged, or as often as was allowed."""
        self.fvars["A_norm"] = _size_of(self.A, self.X)
        self.fvars["B_norm"] = 1.0 if self.B is None else _size_of(self.B, self.X)
        self.X, self.E, _ = self._best_in(self.X)
        self.S = self.X
        direction: Tensor | None = None
        self._measure()
        self._report()
        while self.ivars["iterations_left"] and self.ivars["converged_count"] < self.iparams["k"]:
            changed = self.R if self.iK is None else self.iK @ self.R
            parts = [self.X, changed] if direction is None else [self.X, changed, direction]
            before = self.X
            self.X, self.E, self.S = self._best_in(cat(parts, dim=1))
            direction = self.X - before @ (_times(before.mT, self.B) @ self.X)
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1
            self._measure()
            self._report()

    def _best_in(self, space: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The wanted pairs of the matrix as far as a space can express them, and an orthonormal basis of the space."""
        basis = _orthonormal(space, self.B)
        values, vectors = _eigh(basis.mT @ (self.A @ basis))
        order = values.argsort(descending=self.bparams["largest"])[: self.X.shape[-1]]
        return basis @ vectors[:, order], values[order], basis

    def _measure(self) -> None:
        """How far each pair is from being one, and how many of the first have converged."""
        moved = self.X if self.B is None else self.B @ self.X
        self.R = self.A @ self.X - moved * self.E
        sizes = self.X.norm(dim=0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        errors = self.R.norm(dim=0) / sizes
        self.tvars["rerr"] = errors
        done = (errors < self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = next((at for at, each in enumerate(done) if not each), len(done))

    def _report(self) -> None:
        if self.tracker is not None:
            self.tracker(self)


def _times(rows: Tensor, matrix: Tensor | None) -> Tensor:
    return rows if matrix is None else rows @ matrix


def _size_of(matrix: Tensor, like: Tensor) -> float:
    """About the largest stretching of a matrix, from its effect on some vectors."""
    return float((matrix @ like).norm() / like.norm())


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = eigh((matrix + matrix.mT) / 2)
    return values, vectors


def _orthonormal(space: Tensor, matrix: Tensor | None) -> Tensor:
    """A basis of the columns with `basis.mT @ matrix @ basis` the identity; what they share is left out.

    Twice: the first basis is as inexact as the columns are dependent, the second is not.
    """
    for _ in range(2):
        columns = space / space.norm(dim=0).clamp_min(1e-30)
        gram = columns.mT @ (columns if matrix is None else matrix @ columns)
        values, vectors = _eigh(gram)
        limit = 10 * columns.shape[1] * (1.2e-7 if columns.dtype is float32 else 2.3e-16)
        kept = values > values.max() * limit
        space = columns @ (vectors[:, kept] / values[kept].sqrt())
    return space


def _one(A: Any, B: Any, X: Any, iK: Any, options: Any, given: Any) -> tuple[Tensor, Tensor]:
    k, niter, tol, largest, method, tracker = options
    iparams = {"m": A.shape[0], "n": X.shape[-1], "k": k, "niter": niter, **(given[0] or {})}
    worker = LOBPCG(A, B, X, iK, iparams, {"tol": tol, **(given[1] or {})}, {"largest": largest, **(given[2] or {})},
                    method, tracker)  # fmt: skip
    worker.run()
    return worker.E[:k], worker.X[:, :k]


def _with_gradients(A: Tensor, B: Tensor | None, vectors: Tensor, largest: bool) -> tuple[Tensor, Tensor]:
    """The pairs once more, by the whole decomposition, which has derivatives; signs are those of the vectors found."""
    if B is not None:
        raise ValueError("lobpcg.backward works only with B=None: there are no derivatives of generalised pairs")
    if A.is_sparse:
        raise ValueError("lobpcg.backward does not work with sparse A: use .to_dense()")
    values, whole = eigh((A + A.mT) / 2)
    count = vectors.shape[-1]
    values, whole = (values.flip(-1), whole.flip(-1)) if largest else (values, whole)
    chosen = whole[..., :count]
    signs = (chosen.detach() * vectors).sum(-2, keepdim=True).sign()
    return values[..., :count], chosen * signs


@public(method=False)
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The `k` largest (or smallest) eigenvalues of the symmetric matrix `A`, or of `A x = e B x`, with their vectors.

    `X` has first guesses, `iK` is about the inverse of `A`, and `tracker` is called after each step.
    """
    if A.shape[-1] != A.shape[-2]:
        raise AssertionError(f"A must be square: its shape is {list(A.shape)}")
    if A.dtype not in (float32, float64):
        raise ValueError(f"lobpcg: expected a floating point A, but got {A.dtype}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', not {method!r}")
    rows = A.shape[-1]
    wanted = (1 if X is None else X.shape[-1]) if k is None else k
    width = (wanted if n is None else n) if X is None else X.shape[-1]
    if rows < 3 * width:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={width})"
        )
    if X is None:
        X = randn(*A.shape[:-1], width, dtype=A.dtype, device=A.device)
    if X.shape[:-1] != A.shape[:-1]:
        raise ValueError(f"lobpcg: X has shape {list(X.shape)}, which does not go with A, {list(A.shape)}")
    limit = (1e-4 if A.dtype is float32 else 1e-8) if tol is None else tol
    steps = 1000 if niter is None or niter < 0 else niter
    options = (wanted, steps, limit, largest is not False, method or "ortho", tracker)
    given = (ortho_iparams, ortho_fparams, ortho_bparams)
    bare: list[Any] = [None if each is None else each.detach() for each in (A, B, X, iK)]
    found = (_one if A.dim() == 2 else _batch)(bare[0], bare[1], bare[2], bare[3], options, given)
    return _with_gradients(A, B, found[1], largest is not False) if needs_gradient(A, B) else found


def _batch(A: Any, B: Any, X: Any, iK: Any, options: Any, given: Any) -> tuple[Tensor, Tensor]:
    """One matrix after the other."""
    rows, leading = A.shape[-1], A.shape[:-2]

    def single(each: Any, at: int) -> Any:
        if each is None:
            return None
        columns = each.shape[-1]
        return each.expand(*leading, rows, columns).reshape(-1, rows, columns)[at]

    pairs = [
        _one(single(A, at), single(B, at), single(X, at), single(iK, at), options, given)
        for at in range(A.reshape(-1, rows, rows).shape[0])
    ]
    values, vectors = (stack(list(each)) for each in zip(*pairs, strict=True))
    return values.reshape(*leading, -1), vectors.reshape(*leading, rows, -1)
