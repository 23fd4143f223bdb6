"""What distributions over the outcomes of a `Categorical` share."""

from __future__ import annotations

from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from .categorical import Categorical
from .distribution import Distribution


class OfCategorical(Distribution):
    """A distribution of vectors with one element for each outcome of a categorical one."""

    _categorical: Categorical

    probs: Tensor = same_as("_categorical.probs", "The probabilities of the outcomes.")
    logits: Tensor = same_as("_categorical.logits", "The normalised log-probabilities of the outcomes.")
    param_shape: Size = same_as("_categorical.param_shape", "The shape of `probs` and of `logits`.")
    _param: Tensor = same_as("_categorical._param")
