"""Linear algebra: products, systems, decompositions, transforms of Fourier."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Data, call, enter, floats, integers


def symmetric(*shape: int) -> Data:
    """Symmetric matrices."""
    return lambda: (made := floats(*shape)()) + made.swapaxes(-1, -2)


def positive(*shape: int) -> Data:
    """Positive-definite matrices."""
    return lambda: (made := floats(*shape)()) @ made.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def of_integers(T: Any, a: Any, b: Any) -> Any:
    return a.int() @ b.int()


def doubled(T: Any, a: Any, b: Any) -> Any:
    return a.double() @ b.double()


enter(
    bmm_64x128x64x128=call(lambda T, a, b: T.bmm(a, b), floats(64, 128, 64), floats(64, 64, 128)),
    matmul_bfloat16_512=call(lambda T, a, b: a.bfloat16() @ b.bfloat16(), floats(512, 512), floats(512, 512)),
    matmul_float64_512=call(doubled, floats(512, 512), floats(512, 512)),
    matmul_int64_128=call(lambda T, a, b: a @ b, integers(9, 128, 128), integers(9, 128, 128)),
    matmul_int32_256=call(of_integers, integers(9, 256, 256), integers(9, 256, 256)),
    matmul_complex_256=call(lambda T, a, b: T.complex(a, a) @ T.complex(b, b), floats(256, 256), floats(256, 256)),
    einsum_of_attention=call(
        lambda T, a, b: T.einsum("bhid,bhjd->bhij", a, b), floats(8, 8, 64, 32), floats(8, 8, 64, 32)
    ),
    einsum_of_three=call(
        lambda T, a, b, c: T.einsum("bij,bjk,bkl->bil", a, b, c),
        floats(8, 64, 64),
        floats(8, 64, 64),
        floats(8, 64, 64),
    ),
    tensordot=call(lambda T, a, b: T.tensordot(a, b, 2), floats(64, 32, 32), floats(32, 32, 64)),
    kron_32=call(lambda T, a, b: T.kron(a, b), floats(32, 32), floats(32, 32)),
    outer_2000=call(lambda T, a, b: T.outer(a, b), floats(2000), floats(2000)),
    chain_matmul=call(
        lambda T, a, b, c: T.linalg.multi_dot([a, b, c]), floats(200, 20), floats(20, 300), floats(300, 50)
    ),
    matrix_power_5=call(lambda T, a: T.linalg.matrix_power(a, 5), floats(100, 100)),
    baddbmm=call(lambda T, a, b, c: T.baddbmm(a, b, c), floats(16, 64, 64), floats(16, 64, 32), floats(16, 32, 64)),
    solve_500=call(lambda T, a, b: T.linalg.solve(a, b), floats(500, 500), floats(500, 10)),
    solve__batch_of_4x4=call(lambda T, a, b: T.linalg.solve(a, b), floats(2000, 4, 4), floats(2000, 4, 1)),
    solve__step=call(
        lambda T, a, b: T.linalg.solve(a.requires_grad_(), b).sum().backward(), floats(100, 100), floats(100, 5)
    ),
    inv_64=call(lambda T, a: T.linalg.inv(a), floats(64, 64)),
    inv_300=call(lambda T, a: T.linalg.inv(a), floats(300, 300)),
    inv__batch_of_4x4=call(lambda T, a: T.linalg.inv(a), floats(5000, 4, 4)),
    inv__step=call(lambda T, a: T.linalg.inv(a.requires_grad_()).sum().backward(), floats(100, 100)),
    det_300=call(lambda T, a: T.linalg.det(a), lambda: floats(300, 300)() / 16),
    det__batch_of_3x3=call(lambda T, a: T.linalg.det(a), floats(10000, 3, 3)),
    slogdet__step=call(lambda T, a: T.linalg.slogdet(a.requires_grad_())[1].backward(), floats(100, 100)),
    cholesky_500=call(lambda T, a: T.linalg.cholesky(a), positive(500, 500)),
    cholesky__batch_of_4x4=call(lambda T, a: T.linalg.cholesky(a), positive(2000, 4, 4)),
    cholesky__step=call(
        lambda T, a: T.linalg.cholesky(a.requires_grad_()).diagonal().log().sum().backward(), positive(100, 100)
    ),
    cholesky_solve_200=call(lambda T, a, b: T.cholesky_solve(b, a.tril()), positive(200, 200), floats(200, 5)),
    solve_triangular_200=call(
        lambda T, a, b: T.linalg.solve_triangular(a.tril(), b, upper=False), positive(200, 200), floats(200, 5)
    ),
    lu_factor_100=call(lambda T, a: T.linalg.lu_factor(a), floats(100, 100)),
    lu_factor_500=call(lambda T, a: T.linalg.lu_factor(a), floats(500, 500)),
    lu_200=call(lambda T, a: T.linalg.lu(a), floats(200, 200)),
    lu_solve_200=call(lambda T, a, b: T.linalg.lu_solve(*T.linalg.lu_factor(a), b), floats(200, 200), floats(200, 5)),
    ldl_factor_200=call(lambda T, a: T.linalg.ldl_factor(a), symmetric(200, 200)),
    qr_300=call(lambda T, a: T.linalg.qr(a), floats(300, 300)),
    geqrf_200=call(lambda T, a: T.geqrf(a), floats(200, 200)),
    householder_product=call(lambda T, a: T.linalg.householder_product(*T.geqrf(a)), floats(200, 100)),
    eigh_200=call(lambda T, a: T.linalg.eigvalsh(a) + 0 * T.linalg.eigh(a)[0], symmetric(200, 200)),
    eig_100=call(lambda T, a: T.linalg.eigvals(a).abs().sort()[0], floats(100, 100)),
    svdvals_200=call(lambda T, a: T.linalg.svdvals(a), floats(200, 200)),
    svd_200=call(lambda T, a: T.linalg.svd(a)[1], floats(200, 200)),
    svd__batch_of_3x3=call(lambda T, a: T.linalg.svd(a)[1], floats(2000, 3, 3)),
    lstsq_500x100=call(lambda T, a, b: T.linalg.lstsq(a, b)[0], floats(500, 100), floats(500, 3)),
    lstsq_20x3=call(lambda T, a, b: T.linalg.lstsq(a, b)[0], floats(20, 3), floats(20, 1)),
    pinv_200x100=call(lambda T, a: T.linalg.pinv(a), floats(200, 100)),
    matrix_rank_100=call(lambda T, a: T.linalg.matrix_rank(a), floats(100, 100)),
    matrix_exp_100=call(lambda T, a: T.linalg.matrix_exp(a / 20), floats(100, 100)),
    matrix_norm_2=call(lambda T, a: T.linalg.matrix_norm(a, 2), floats(100, 100)),
    cov_50x2000=call(lambda T, a: T.cov(a), floats(50, 2000)),
    corrcoef_50x2000=call(lambda T, a: T.corrcoef(a), floats(50, 2000)),
    cdist_1000x64=call(lambda T, a, b: T.cdist(a, b), floats(1000, 64), floats(1000, 64)),
    cdist_1000x64__step=call(
        lambda T, a, b: T.cdist(a.requires_grad_(), b).sum().backward(), floats(300, 64), floats(300, 64)
    ),
    cdist_p_1=call(lambda T, a, b: T.cdist(a, b, p=1), floats(300, 64), floats(300, 64)),
    pdist_300=call(lambda T, a: T.nn.functional.pdist(a), floats(300, 32)),
    fft2_16x256x256=call(lambda T, a: T.fft.fft2(a), floats(16, 256, 256)),
    rfft_256x4096=call(lambda T, a: T.fft.rfft(a), floats(256, 4096)),
    irfft_256x2049=call(lambda T, a: T.fft.irfft(T.complex(a, a)), floats(256, 2049)),
    stft=call(lambda T, a: T.stft(a, 512, 128, window=T.hann_window(512), return_complex=True), floats(4, 16000)),
    istft=call(lambda T, a: T.istft(T.complex(a, a), 512, 128, window=T.hann_window(512)), floats(4, 257, 126)),
    CSR_product=call(lambda T, a, b: (a * (a > 1.5)).to_sparse_csr() @ b, floats(1000, 1000), floats(1000, 32)),
    sparse_mm=call(lambda T, a, b: T.sparse.mm((a * (a > 1.5)).to_sparse(), b), floats(1000, 1000), floats(1000, 32)),
)
