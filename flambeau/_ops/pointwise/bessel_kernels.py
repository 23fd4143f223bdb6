"""Bessel and Airy functions on arrays, in NumPy alone.

Evaluated in float64, good to a few units in the last place of 1 (near a zero, of the function's usual size). Near the
origin, a Chebyshev series with the logarithm and the pole taken out; far from it, the slowly varying factors of the
asymptotic form as Chebyshev series in the inverse argument. The coefficients were computed to 40 digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.compiled_body import compiled_at_any_size
from . import special_kernels as kernels
from .special_kernels import chebyshev, in_double, in_parts

Array = Any

_SQRT_HALF = math.sqrt(0.5)
_TWO_OVER_PI = 2 / math.pi

# ----- Bessel functions of the first and second kind --------------------------------------------------------------

# For x <= 8, in x**2 / 32 - 1: J0(x), J1(x) / x, Y0(x) - 2/pi log(x) J0(x), (Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x.
_J0_SMALL = (
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725,
    -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05,
    -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
    -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17,
)  # fmt: skip
_J1_SMALL = (
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037,
    -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06,
    -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
    -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17, 3.6912682997929334e-19,
)  # fmt: skip
_Y0_SMALL = (
    -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663, -0.17730201278114358,
    0.04719668959576339, -0.007287962479552079, 0.0007531135932577742, -5.632079141056987e-05, 3.206532537654801e-06,
    -1.44072332740187e-07, 5.248794787330516e-09, -1.5837552541812015e-10, 4.02633081830612e-12,
    -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17, 3.9032584173475982e-19,
)  # fmt: skip
_Y1_SMALL = (
    0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346, -0.028328123944594365,
    0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05, -3.53808001868935e-06,
    1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10, -6.4651518414115946e-12,
    1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17, -8.224911372021585e-19,
)  # fmt: skip
# For x >= 8, in 2 (8 / x)**2 - 1: Pn and x Qn, where Jn(x) = sqrt(2 / (pi x)) (Pn cos(c) - Qn sin(c)) and
# c = x - (2 n + 1) pi / 4.
_P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17, -2.880866169482871e-18,
)  # fmt: skip
_Q0 = (
    -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
    -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
    -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
    -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886514e-18, 1.047315897377605e-18,
    -2.3369301722113103e-19,
)  # fmt: skip
_P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08, -1.8718907491063067e-09,
    8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13, -4.6842237839904895e-14,
    5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16, -1.7312313216116335e-17,
    3.0492991197665872e-18,
)  # fmt: skip
_Q1 = (
    0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07, 6.583354662120443e-09,
    -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12, 2.8774212663332235e-13,
    -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16, 1.4141084390211833e-16,
    -2.626761589838529e-17, 5.219264919671406e-18, -1.1012617187879541e-18,
)  # fmt: skip


def _far_waves(x: Array, order: int) -> tuple[Array, Array]:
    """Jn(x) and Yn(x) for x >= 8."""
    inverse = 8 / x
    variable = 2 * inverse * inverse - 1
    p = chebyshev((_P0, _P1)[order], variable)
    q = chebyshev((_Q0, _Q1)[order], variable) / x
    sine, cosine = np.sin(x) * _SQRT_HALF, np.cos(x) * _SQRT_HALF  # shifted by sums: x - pi / 4 would be rounded
    shifted_sine, shifted_cosine = (sine - cosine, sine + cosine) if order == 0 else (-sine - cosine, sine - cosine)
    size = np.sqrt(_TWO_OVER_PI / x)
    return size * (p * shifted_cosine - q * shifted_sine), size * (p * shifted_sine + q * shifted_cosine)


def _first_kind(x: Array, order: int) -> Array:
    def far(x: Array) -> Array:
        wave = _far_waves(np.abs(x), order)[0]
        return np.copysign(1.0, x) * wave if order else wave

    return in_parts(np.abs(x) <= 8, x, lambda x: _first_near(x, order), far)


def _first_near(x: Array, order: int) -> Array:
    fitted = chebyshev((_J0_SMALL, _J1_SMALL)[order], x * x / 32 - 1)
    return fitted * x if order else fitted


def _second_kind(x: Array, order: int) -> Array:
    def near(x: Array) -> Array:
        fitted = chebyshev((_Y0_SMALL, _Y1_SMALL)[order], x * x / 32 - 1)
        logarithm = _TWO_OVER_PI * np.log(x) * _first_near(x, order)
        return fitted * x + logarithm - _TWO_OVER_PI / x if order else fitted + logarithm

    result = in_parts(x <= 8, x, near, lambda x: _far_waves(x, order)[1])
    return np.where(x == 0, -np.inf, np.where(x < 0, np.nan, result))


@compiled_at_any_size
@in_double
def bessel_j0(x: Array) -> Array:
    """The Bessel function of the first kind of order 0."""
    return _first_kind(x, 0)


@compiled_at_any_size
@in_double
def bessel_j1(x: Array) -> Array:
    """The Bessel function of the first kind of order 1."""
    return _first_kind(x, 1)


@compiled_at_any_size
@in_double
def bessel_y0(x: Array) -> Array:
    """The Bessel function of the second kind of order 0."""
    return _second_kind(x, 0)


@compiled_at_any_size
@in_double
def bessel_y1(x: Array) -> Array:
    """The Bessel function of the second kind of order 1."""
    return _second_kind(x, 1)


@compiled_at_any_size
@in_double
def spherical_bessel_j0(x: Array) -> Array:
    """sin(x) / x."""
    near = np.abs(x) < 1e-4
    square = x * x
    with np.errstate(invalid="ignore"):
        quotient = np.sin(x) / np.where(near, 1.0, x)
    return np.where(np.isinf(x), 0.0, np.where(near, 1 - square / 6, quotient))


# ----- modified Bessel functions of the second kind ---------------------------------------------------------------

# For x <= 2, in x**2 / 2 - 1: K0(x) + log(x / 2) I0(x) and x (K1(x) - log(x / 2) I1(x)).
_K0_SMALL = (
    -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926, 2.286212103119452e-05,
    2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14,
    1.3744654358807508e-16, 3.5708965285083736e-19,
)  # fmt: skip
_K1_SMALL = (
    0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864, -0.0001730288957513052,
    -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13,
    -2.427449850519366e-15, -7.023863479386288e-18,
)  # fmt: skip
# For x >= 2, in 4 / x - 1: sqrt(x) exp(x) Kn(x).
_K0_LARGE = (
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802, 1.39498137188765e-05,
    -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08, 8.574034017414225e-09,
    -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11, 1.8559491149549264e-11,
    -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13, 8.032890775068375e-14,
    -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15, 5.5120559994043335e-16,
    -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17, 5.3004337711773354e-18,
    -1.7331712005821001e-18,
)  # fmt: skip
_K1_LARGE = (
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162, -1.936197974166083e-05,
    2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08, -1.0345762465678097e-08,
    2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11,
    5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13, -8.976705182010146e-14,
    2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15, -6.057047270643018e-16,
    1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17, -5.7567444820733025e-18,
    1.8778651901623268e-18,
)  # fmt: skip


def _decaying(x: Array, order: int, scaled: bool) -> Array:
    """Kn(x), times exp(x) if `scaled`."""

    def near(x: Array) -> Array:
        fitted = chebyshev((_K0_SMALL, _K1_SMALL)[order], x * x / 2 - 1)
        logarithm = np.log(x / 2) * (kernels.i0, kernels.i1)[order](x)
        value = fitted / x + logarithm if order else fitted - logarithm
        return value * np.exp(x) if scaled else value

    def far(x: Array) -> Array:
        value = chebyshev((_K0_LARGE, _K1_LARGE)[order], 4 / x - 1) / np.sqrt(x)
        return value if scaled else value * np.exp(-x)

    return np.where(x == 0, np.inf, np.where(x < 0, np.nan, in_parts(x <= 2, x, near, far)))


@compiled_at_any_size
@in_double
def k0(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 0."""
    return _decaying(x, 0, scaled=False)


@compiled_at_any_size
@in_double
def k1(x: Array) -> Array:
    """The modified Bessel function of the second kind of order 1."""
    return _decaying(x, 1, scaled=False)


@compiled_at_any_size
@in_double
def k0e(x: Array) -> Array:
    """exp(x) K0(x)."""
    return _decaying(x, 0, scaled=True)


@compiled_at_any_size
@in_double
def k1e(x: Array) -> Array:
    """exp(x) K1(x)."""
    return _decaying(x, 1, scaled=True)


# ----- the Airy function ------------------------------------------------------------------------------------------

# With z = 2/3 |x|**1.5. For x >= 1, in 4 / (3 z) - 1: 2 sqrt(pi) x**0.25 exp(z) Ai(x).
_AIRY_POSITIVE = (
    0.9637683609849689, -0.03241600019448593, 0.0031941239613695834, -0.0004942254050330157, 9.706517942546595e-05,
    -2.224444511200298e-05, 5.694838987920343e-06, -1.5868397039029868e-06, 4.7311609911660025e-07,
    -1.4914679268537125e-07, 4.928201239454347e-08, -1.6955948660827914e-08, 6.043322459186302e-09,
    -2.2220862485979766e-09, 8.400808330101413e-10, -3.256498049790017e-10, 1.2913338128187496e-10,
    -5.2278721914194944e-11, 2.157112018055966e-11, -9.058221909804457e-12, 3.866142718179408e-12,
    -1.6752774093901638e-12, 7.36266363413132e-13, -3.2789553078945355e-13, 1.4785693873822461e-13,
    -6.745927227577916e-14, 3.112098467753292e-14, -1.4508441981906477e-14, 6.8314165600519464e-15,
    -3.247207543950266e-15, 1.557481811138303e-15, -7.534762422678103e-16, 3.675222662762344e-16,
    -1.8068057735739335e-16, 8.949732076829249e-17, -4.4652444062184196e-17, 2.2433021301787985e-17,
    -1.134491454506358e-17, 5.7729999982487234e-18, -2.953337927509305e-18, 1.515131815535916e-18,
)  # fmt: skip
# For -4 <= x <= 1, in (x + 1.5) / 2.5: Ai(x).
_AIRY_MIDDLE = (
    0.09027414074142226, 0.29249722647288595, -0.186750998521441, -0.19360800717623788, 0.15721637575317926,
    -0.004479284787380084, -0.02933537844705055, 0.009529974846357987, 0.0009174027911484846, -0.0012038035388960231,
    0.00021408025539892522, 4.0737705471533106e-05, -2.2923831996326747e-05, 2.3747538686082324e-06,
    7.304604004545059e-07, -2.511283805631676e-07, 1.42118762694196e-08, 7.452440800239197e-09,
    -1.7807928236162851e-09, 3.95280189656279e-11, 4.973470848023565e-11, -8.806960589251382e-12,
    -5.256625300104146e-14, 2.351700214207345e-13, -3.196429878343308e-14, -1.0036406966378302e-15,
    8.307462983797444e-16, -8.828956302262095e-17, -4.99127054105002e-18, 2.27748101131542e-18,
)  # fmt: skip
# For x <= -4, in 512 / (9 z**2) - 1: P and z Q, where Ai(x) = (P cos(c) + Q sin(c)) / (sqrt(pi) |x|**0.25) and
# c = z - pi / 4.
_AIRY_P = (
    0.9993708890742778, -0.0006216836584374116, 7.181193774368645e-06, -2.316269813501758e-07, 1.3216283888528755e-08,
    -1.0938736172758127e-09, 1.1794620737908535e-10, -1.5518841909929856e-11, 2.386927411492466e-12,
    -4.16552889201035e-13, 8.071678110741466e-14, -1.7087573211105664e-14, 3.902945148540805e-15,
    -9.523976784906871e-16, 2.4632810885748683e-16, -6.709077463456904e-17, 1.9139396837024275e-17,
    -5.693084361777701e-18, 1.758952815523019e-18,
)  # fmt: skip
_AIRY_Q = (
    0.06882170556308001, -0.0006089151840832694, 1.3174151014089972e-05, -6.014071912908298e-07,
    4.327537342298499e-08, -4.247731732954726e-09, 5.232285376834493e-10, -7.672290975115024e-11,
    1.2923809452698712e-11, -2.43852975710829e-12, 5.059047237872084e-13, -1.137851379225632e-13,
    2.7441377308322106e-14, -7.0344821126322824e-15, 1.9032114367193004e-15, -5.403040541397448e-16,
    1.6016711026345388e-16, -4.937527439863738e-17, 1.5773435787722914e-17, -5.206129560968553e-18,
    1.770678751037084e-18, -6.1916686968385e-19, 2.22149124537577e-19, -8.163479464393923e-20,
)  # fmt: skip


@compiled_at_any_size
@in_double
def airy_ai(x: Array) -> Array:
    """The Airy function Ai."""

    def elsewhere(x: Array) -> Array:
        return in_parts(x < -4, x, lambda x: _airy_waves(-x), lambda x: chebyshev(_AIRY_MIDDLE, (x + 1.5) / 2.5))

    return np.where(np.isinf(x), np.nan, in_parts(x > 1, x, _airy_decaying, elsewhere))


def _airy_decaying(x: Array) -> Array:
    z = 2 / 3 * x * np.sqrt(x)
    factor = chebyshev(_AIRY_POSITIVE, 4 / (3 * z) - 1)
    return factor * np.exp(-z) / (2 * math.sqrt(math.pi) * np.sqrt(np.sqrt(x)))


def _airy_waves(size: Array) -> Array:
    z = 2 / 3 * size * np.sqrt(size)
    variable = 512 / (9 * z * z) - 1
    sine, cosine = np.sin(z), np.cos(z)
    p = chebyshev(_AIRY_P, variable)
    q = chebyshev(_AIRY_Q, variable) / z
    waves = p * (sine + cosine) + q * (sine - cosine)
    return waves / (math.sqrt(2 * math.pi) * np.sqrt(np.sqrt(size)))
