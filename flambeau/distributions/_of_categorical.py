"""What distributions over the outcomes of a `Categorical` share."""

from __future__ import annotations

from flambeau import Size, Tensor

from .categorical import Categorical
from .distribution import Distribution


class OfCategorical(Distribution):
    """A distribution of vectors with one element for each outcome of a categorical one."""

    _categorical: Categorical

    @property
    def probs(self) -> Tensor:
        """The probabilities of the outcomes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The normalised log-probabilities of the outcomes."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and of `logits`."""
        return self._categorical.param_shape

    @property
    def _param(self) -> Tensor:
        return self._categorical._param
