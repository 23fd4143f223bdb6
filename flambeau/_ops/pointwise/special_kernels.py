"""Special functions on arrays: erf, gamma and Bessel families, in NumPy alone.

Each function is evaluated in float64 by series and polynomial fits, good to a few units in the last place; where single
precision is common and speed matters (`erf`), float32 has a shorter fit of its own. Coefficients are Chebyshev
fits and exact series coefficients, computed to 40 digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.backend import as_array, read
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._dispatch.arguments.precision import in_expressions
from ..._dispatch.compiled_body import compiled_at_any_size

Array = Any

_SQRT_PI = math.sqrt(math.pi)
_FEW = 64
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Sum of `coefficients[k] * x**k`, in the precision of `x`."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= x
        result += x.dtype.type(coefficient)
    return result


def chebyshev(coefficients: Sequence[float], x: Array) -> Array:
    """The sum of `coefficients[k]` times the Chebyshev polynomial of degree k."""
    last = np.zeros_like(x)
    before = np.zeros_like(x)
    for coefficient in reversed(coefficients[1:]):
        last, before = 2 * x * last - before + coefficient, last
    return x * last - before + coefficients[0]


def in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """Run `function` on float64 arrays of at least one dimension; the result has the dtype of the first argument."""

    @functools.wraps(function)
    def run(*arrays: Array) -> Array:
        first = arrays[0]
        if any(hasattr(each, "is_expression") for each in arrays):
            return function(*[each.astype(np.float64) for each in arrays]).astype(first.dtype)
        wide = [np.atleast_1d(np.multiply(each, 1.0, dtype=np.float64)) for each in arrays]  # dense, in memory order
        with np.errstate(all="ignore"):  # what is computed where it is not chosen
            result = function(*wide).astype(first.dtype, copy=False)
        return result.reshape(()) if max(np.ndim(each) for each in arrays) == 0 else result

    return run


def in_parts(condition: Array, x: Array, inside: Callable[[Array], Array], outside: Callable[[Array], Array]) -> Array:
    """`inside(x)` where the condition holds, else `outside(x)`; of arrays, each sees its own elements alone."""
    if hasattr(x, "is_expression"):
        return np.where(condition, inside(x), outside(x))
    result = np.empty_like(x)
    result[condition] = inside(x[condition])
    rest = ~condition
    result[rest] = outside(x[rest])
    return result


# ----- the error function -----------------------------------------------------------------------------------------

# (1 + 2 x) erfcx(x) for x >= 0, as a polynomial in (x - 3.75) / (x + 3.75).
_ERFCX = (
    1.2375126308378275, -0.14024059858554702, 0.00358541548546369, 0.08227673849015102, -0.10880393014170746,
    0.09230432116019834, -0.05869339859054762, 0.0283622774215156, -0.009746579547619623, 0.0017556258324217529,
    0.00029371359480570737, -0.00029015397928986765, 5.164940777546399e-05, 2.2383912036550678e-05,
    -1.1445049125831309e-05, -9.72849582211122e-07, 1.7534434251106334e-06, -5.826281078800777e-08,
    -2.6114702359900956e-07, 2.4289762925488707e-08, 4.0971223152703005e-08, -4.389284159986328e-09,
    -6.545560212480267e-09, 5.457157304704688e-10, 9.02214970034059e-10, -3.75315827795962e-11,
    -7.33950500852954e-11,
)  # fmt: skip
# erf(x) / x for |x| <= 1, as a polynomial in 2 x**2 - 1.
_ERF_NEAR_ZERO = (
    0.9654687386698673, -0.1405360890227171, 0.019852496688983708, -0.0022854855611441132, 0.00021751715604160108,
    -1.7537169441124826e-05, 1.223382738352401e-06, -7.51156928660089e-08, 4.11580059766496e-09,
    -2.035228404899467e-10, 9.167606746069445e-12, -3.8078827395263415e-13, 1.454817075960679e-14,
)  # fmt: skip
# erf(x) / x for |x| <= 3.95 in float32: numerator and denominator in x**2.
_ERF_SINGLE = (
    (1.1283791437867392, 0.19154501717806421, 0.05287477891130953, 0.0038079455717906366, 0.00028468446520970913,
     2.025966421716766e-06),
    (1.0, 0.5030850282967344, 0.11455746466349048, 0.015054653803870282, 0.0011706765764743906, 3.78322445624808e-05),
)  # fmt: skip


def _exp_minus_square(x: Array) -> Array:
    """exp(-x**2) without the error that rounding x**2 would bring: the high half of x has an exact square."""
    high = x.astype(np.float32).astype(np.float64)
    return np.exp(-high * high) * np.exp((high - x) * (high + x))


def _erfcx_of_positive(x: Array) -> Array:
    fitted = polynomial(_ERFCX, 1 - 7.5 / (x + 3.75))
    return fitted / (1 + 2 * x)


@in_expressions("erf")
def erf(x: Array) -> Array:
    """The error function."""
    if type(x) is np.ndarray and x.size <= _FEW:  # cheaper one by one than the fits' calls
        values = np.fromiter(map(math.erf, x.ravel().tolist()), x.dtype, x.size)
        if x.flags.c_contiguous:
            return values.reshape(x.shape)
        result = np.positive(x)  # which lies in memory as the results of other ops do
        result[...] = values.reshape(x.shape)
        return result
    return _erf_single(x) if x.dtype == np.float32 else _erf_double(x)


def _erf_single(x: Array) -> Array:
    clipped = np.clip(x, np.float32(-3.95), np.float32(3.95))
    square = as_array(clipped * clipped)
    return np.clip(clipped * polynomial(_ERF_SINGLE[0], square) / polynomial(_ERF_SINGLE[1], square), -1, 1)


@in_double
def _erf_double(x: Array) -> Array:
    size = np.abs(x)
    near = size <= 1
    result = np.empty_like(x)
    result[near] = x[near] * polynomial(_ERF_NEAR_ZERO, 2 * x[near] * x[near] - 1)
    far = np.minimum(size[~near], 6.0)
    result[~near] = np.copysign(1 - _exp_minus_square(far) * _erfcx_of_positive(far), x[~near])
    return result


@compiled_at_any_size
@in_expressions("erfc")
@in_double
def erfc(x: Array) -> Array:
    """1 - erf(x), accurate where that is small."""
    size = np.minimum(np.abs(x), 30.0)
    tail = _exp_minus_square(size) * _erfcx_of_positive(size)
    result = np.where(x < 0, 2 - tail, tail)
    near = (x > -1) & (x < 0.5)
    result[near] = 1 - x[near] * polynomial(_ERF_NEAR_ZERO, 2 * x[near] * x[near] - 1)
    return result


@compiled_at_any_size
@in_double
def erfcx(x: Array) -> Array:
    """exp(x**2) erfc(x)."""
    result = in_parts(
        x < 0, x, lambda x: 2 * np.exp(x * x) - _erfcx_of_positive(-x), lambda x: _erfcx_of_positive(np.abs(x))
    )
    return np.where(x == np.inf, 0.0, result)


@compiled_at_any_size
@in_expressions("erfinv")
@in_double
def erfinv(x: Array) -> Array:
    """The inverse of erf: a rough start, then Halley's iteration on erfc, exact where |x| is near 1."""
    size = np.abs(x)
    rest = 1 - size
    logarithm = np.log(rest * (1 + size))
    half = 2 / (math.pi * 0.147) + logarithm / 2
    with np.errstate(invalid="ignore"):
        guess = np.sqrt(np.maximum(np.sqrt(half * half - logarithm / 0.147) - half, 0))
        for _ in range(4):
            error = np.where(size < 0.5, size - _erf_double(guess), erfc(guess) - rest)
            step = error * _SQRT_PI / 2 * np.exp(guess * guess)
            guess = guess + step / (1 + guess * step)
    result = np.where(size == 1, np.inf, np.where(size > 1, np.nan, guess))
    return np.copysign(result, x)


# The inverse of the normal distribution's area: Wichura's algorithm AS 241, numerators and denominators for the middle
# and for the two parts of a tail.
_MIDDLE = (
    (
        3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987,
        67265.7709270087, 33430.57558358813, 2509.0809287301227,
    ),
    (
        1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271,
        28729.085735721943, 5226.495278852854,
    ),
)  # fmt: skip
_TAIL = (
    (
        1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684,
        0.2417807251774506, 0.022723844989269184, 0.0007745450142783414,
    ),
    (
        1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
        0.0005475938084995345, 1.0507500716444169e-09,
    ),
)  # fmt: skip
_FAR_TAIL = (
    (
        6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
        0.0012426609473880784, 2.7115555687434876e-05, 2.0103343992922881e-07,
    ),
    (
        1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133,
        1.8463183175100548e-05, 1.421511758316446e-07, 2.0442631033899397e-15,
    ),
)  # fmt: skip


def _ratio(fit: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    return polynomial(fit[0], x) / polynomial(fit[1], x)


@compiled_at_any_size
@in_double
def ndtri(x: Array) -> Array:
    """The inverse of the normal distribution's area."""
    centred = x - 0.5
    middle = centred * _ratio(_MIDDLE, 0.180625 - centred * centred)
    root = np.sqrt(-np.log(np.where(centred < 0, x, 1 - x)))
    tail: Array = np.where(root <= 5, _ratio(_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5))
    tail = np.where(root == np.inf, np.inf, tail)
    return np.where(np.abs(centred) <= 0.425, middle, np.where(centred < 0, -tail, tail))


# ----- the gamma function -----------------------------------------------------------------------------------------

# log Gamma(2 + z) / z for |z| <= 1/2, in z: 1 - Euler's constant, then (-1)**k (zeta(k) - 1) / k.
_LGAMMA = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10,
)  # fmt: skip
# B(2k) / (2k (2k - 1)), of Stirling's series, and B(2k) / (2k), of the one of its derivative.
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


@compiled_at_any_size
@in_double
def lgamma(x: Array) -> Array:
    """log |Gamma(x)|."""
    size = np.abs(x)
    result = _lgamma_of_positive(size)
    sine = np.sin(math.pi * np.abs(x - np.rint(x)))
    reflected = np.where(x == np.rint(x), np.inf, -np.log(sine * size / math.pi) - result)
    reflected = np.where(size < 1e-100, result, reflected)  # the product would be 0
    return np.where(np.isinf(x), np.inf, np.where(x < 0, reflected, result))


def _lgamma_of_positive(x: Array) -> Array:
    large = x >= 10
    product = np.ones_like(x)
    rest = x
    for _ in range(8):  # down into [1.5, 2.5)
        high = rest >= 2.5
        rest = np.where(high, rest - 1, rest)
        product = np.where(high, product * rest, product)
    below, low = x < 0.5, x < 1.5  # up into [1.5, 2.5]
    z = np.where(below, rest, np.where(low, rest - 1, rest - 2))
    product = np.where(low, np.where(below, rest + rest * rest, rest), product)
    logarithm = np.log(np.where(large, x, product))
    small = z * polynomial(_LGAMMA, z) + np.where(low, -logarithm, logarithm)
    inverse = 1 / x
    series = polynomial(_STIRLING, inverse * inverse) * inverse
    return np.where(large, (x - 0.5) * (logarithm - 1) - 0.5 + _HALF_LOG_TWO_PI + series, small)


def _sum_of_inverses(numbers: Sequence[Array]) -> tuple[Array, Array]:
    """1 / a + 1 / b + ... as one fraction, since a division takes as long as many products."""
    top, bottom = 1.0, numbers[0]
    for number in numbers[1:]:
        top, bottom = top * number + bottom, bottom * number
    return top, bottom


@compiled_at_any_size
@in_double
def digamma(x: Array) -> Array:
    """The derivative of log Gamma."""
    reflected = x < 0
    y = np.where(reflected, 1 - x, x)
    low = y < 10  # as far as the series does not reach, ten steps of the recurrence: 1 / y + 1 / (y + 1) + ...
    top, bottom = _sum_of_inverses([y + step for step in range(10)])
    result = np.where(low, -top / bottom, 0.0)
    y = np.where(low, y + 10, y)
    inverse = 1 / y
    square = inverse * inverse
    result = result + (np.log(y) - 0.5 * inverse - polynomial(_DIGAMMA, square) * square)
    whole = np.rint(x)
    below = np.where(x == whole, np.nan, result - math.pi / np.tan(math.pi * (x - whole)))
    infinite = np.where(x == 0, np.copysign(np.inf, -x), np.inf)
    return np.where((x == 0) | (x == np.inf), infinite, np.where(reflected, below, result))


# B(2k) / (2k)! of the Euler-Maclaurin formula.
_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000,
)  # fmt: skip


@in_double
def zeta(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function, the sum of (k + q) ** -x over k = 0, 1, ..."""
    x, q = np.broadcast_arrays(x, q)
    near = q >= -3
    if q.size and read(near.all()):
        return _zeta_of_near(x, q)
    if REPRODUCIBILITY.product is None or not q.size:
        return _zeta(x, q, q)
    # Each element by its own way, whatever stands beside it.
    return np.where(near, _zeta_of_near(x, np.where(near, q, q.dtype.type(1))), _zeta(x, q, q))


@compiled_at_any_size
def _zeta_of_near(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function for q from -3 on, where a known number of terms is enough."""
    return _zeta(x, q, None)


def _zeta(x: Array, q: Array, far: Array | None) -> Array:
    """The sum, with as many further terms as the numbers of `far` need."""
    result, shifted = np.power(q, -x), q + 1
    for _ in range(11):
        result = result + np.power(shifted, -x)
        shifted = shifted + 1
    # Where q is far below zero a few terms more are needed before the tail may be taken as an integral.
    while far is not None and read((negative := (shifted < 9) & (far > -1e5) & (x > 1)).any()):
        result = np.where(negative, result + np.power(shifted, -x), result)
        shifted = np.where(negative, shifted + 1, shifted)
    power = np.power(shifted, -x)
    result = result + (shifted * power / (x - 1) + power / 2)
    factor = x * power / shifted
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        result = result + coefficient * factor
        factor = factor * (x + 2 * k + 1) * (x + 2 * k + 2) / (shifted * shifted)
    result = np.where((q > 0) & (q == np.inf) & ~np.isnan(x), 0.0, result)
    pole = (q <= 0) & (q == np.floor(q))
    undefined = (x < 1) | ((q <= 0) & ~pole & (x != np.floor(x)))
    return np.where(x == 1, np.inf, np.where(undefined, np.nan, np.where(pole, np.inf, result)))


_LARGEST_FACTORIAL = 170
"""Of which number: what is larger is no float64."""


def polygamma(order: int, x: Array) -> Array:
    """The derivative of that order of `digamma`."""
    if order == 0:
        return digamma(x)
    sign = -1.0 if order % 2 == 0 else 1.0
    if order == 1:
        return trigamma(x)
    factorial = math.factorial(order) if order <= _LARGEST_FACTORIAL else math.inf
    return x.dtype.type(sign * factorial) * zeta(np.full_like(x, order + 1), x).astype(x.dtype)


@compiled_at_any_size
def trigamma(x: Array) -> Array:
    """The derivative of `digamma`. Generated code for float32 computes in that, as PyTorch does."""
    turns = x.dtype.type(math.pi) * x
    if hasattr(x, "is_expression") and x.dtype == np.float32:
        return _trigamma(x, turns)
    return in_double(_trigamma)(x, turns)


def _trigamma(x: Array, turns: Array) -> Array:
    """`turns` is pi times x as it is rounded in the given precision: at poles PyTorch divides by the sine of that."""
    reflected = x < 0.5
    y = np.where(reflected, 1 - x, x)
    low = y < 10
    top, bottom = _sum_of_inverses([(y + step) * (y + step) for step in range(10)])
    result = np.where(low, top / bottom, 0.0)
    y = np.where(low, y + 10, y)
    inverse = 1 / y
    square = inverse * inverse
    tail = polynomial([coefficient * 2 * (k + 1) for k, coefficient in enumerate(_DIGAMMA)], square)
    result += inverse + square / 2 + inverse * square * tail
    whole = np.rint(x)
    sine = np.sin(np.where((x == whole) & (x < 0), turns, math.pi * (x - whole)))
    return np.where(reflected, (math.pi / sine) ** 2 - result, result)


# ----- modified Bessel functions ----------------------------------------------------------------------------------

# exp(-x) I0(x) and exp(-x) I1(x) / x for 0 <= x <= 8 in x/4 - 1; sqrt(x) exp(-x) In(x) for x >= 8 in 16/x - 1.
_I0_SMALL = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357,
    -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05,
    -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11,
    -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
    -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17,
)  # fmt: skip
_I1_SMALL = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
    -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06,
    -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
    -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
)  # fmt: skip
_I0_LARGE = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
)  # fmt: skip
_I1_LARGE = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17,
)  # fmt: skip


_LEADING = 6
"""So many terms of a Chebyshev series are summed in float64 for a result of float32; those after them are small."""


def _short_chebyshev(coefficients: Sequence[float], x: Array) -> Array:
    """A Chebyshev series of a float64 expression to the digits of float32: terms below these are left out."""
    least = 1e-9 * max(map(abs, coefficients))
    count = 1 + max(place for place, each in enumerate(coefficients) if abs(each) > least)
    twice = 2 * x
    narrow = twice.astype(np.float32)
    last = before = np.zeros_like(narrow)
    # So grouped, a step waits for a product and a sum of the one before, and not for another sum.
    for coefficient in reversed(coefficients[_LEADING:count]):
        last, before = narrow * last + (coefficient - before), last
    last, before = last.astype(np.float64), before.astype(np.float64)
    for coefficient in reversed(coefficients[1 : min(_LEADING, count)]):
        last, before = twice * last + (coefficient - before), last
    return x * last - before + coefficients[0]


def _bessel(
    small: Sequence[float], large: Sequence[float], odd: bool, scaled: bool, doc: str
) -> Callable[[Array], Array]:
    """In(x), or exp(-|x|) In(x) if scaled."""

    def far(x: Array) -> Array:
        return chebyshev(large, 16 / x - 1) / np.sqrt(x)

    def short_far(x: Array) -> Array:
        """The far branch with one division: its error is beyond the digits of float32."""
        root = 1 / np.sqrt(x)
        return _short_chebyshev(large, 16 * root * root - 1) * root

    def computed(x: Array, series: Callable[[Sequence[float], Array], Array], far: Callable[[Array], Array]) -> Array:
        def near(x: Array) -> Array:
            fitted = series(small, x / 4 - 1)
            return x * fitted if odd else fitted

        size = np.abs(x)
        result = in_parts(size <= 8, size, near, far)
        if not scaled:
            result = np.exp(size) * result
        return np.where(x < 0, -result, result) if odd else result

    in_full = in_double(lambda x: computed(x, chebyshev, far))

    def function(x: Array) -> Array:
        if hasattr(x, "is_expression") and x.dtype == np.float32:
            return computed(x.astype(np.float64), _short_chebyshev, short_far).astype(np.float32)
        return in_full(x)

    function.__doc__ = doc
    return compiled_at_any_size(function)


i0 = _bessel(_I0_SMALL, _I0_LARGE, False, False, "The modified Bessel function of the first kind of order 0.")
i0e = _bessel(_I0_SMALL, _I0_LARGE, False, True, "exp(-|x|) I0(x).")
i1 = _bessel(_I1_SMALL, _I1_LARGE, True, False, "The modified Bessel function of the first kind of order 1.")
i1e = _bessel(_I1_SMALL, _I1_LARGE, True, True, "exp(-|x|) I1(x).")
