"""Indexing, sorting, counting, views, reductions and narrow dtypes, random numbers, what goes in and out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import call, enter, floats, integers


def put(T: Any, a: Any, i: Any, values: Any, accumulate: bool) -> Any:
    return a.clone().index_put_((i,), values, accumulate)


def string_of_views(T: Any, x: Any) -> Any:
    for _ in range(20):
        x = x.transpose(0, 1)[1:].unsqueeze(0).squeeze(0).reshape(x.shape[1] - 1, x.shape[0])
    return x.contiguous()


def through_file(T: Any, tensor: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tensor.pt")
        T.save({"weight": tensor}, path)
        return T.load(path)["weight"]


def loaded(batch: int) -> Callable[[Any], Callable[[], Any]]:
    """A pass over 2,000 samples."""

    def prepare(T: Any) -> Callable[[], Any]:
        T.manual_seed(0)
        samples = T.utils.data.TensorDataset(T.randn(2000, 64), T.arange(2000))
        loader = T.utils.data.DataLoader(samples, batch, shuffle=True)
        return lambda: sum(len(labels) for _, labels in loader)

    return prepare


def columns_of_a_table(T: Any) -> Any:
    rng = np.random.default_rng(0)
    table = {"a": rng.standard_normal(20000), "b": rng.integers(0, 9, 20000), "c": rng.random(20000) > 0.5}
    return T.stack([T.from_numpy(each).float() for each in table.values()], 1)


matrix = floats(1000, 1000)
enter(
    index_put=call(lambda T, a, i, v: put(T, a, i, v, False), floats(5000, 64), integers(5000, 2000), floats(2000, 64)),
    index_put__accumulating=call(
        lambda T, a, i, v: put(T, a, i, v, True), floats(5000, 64), integers(5000, 20000), floats(20000, 64)
    ),
    gather=call(lambda T, a, i: a.gather(1, i), floats(1000, 500), integers(500, 1000, 300)),
    gather__step=call(
        lambda T, a, i: a.requires_grad_().gather(1, i).sum().backward(), floats(1000, 500), integers(500, 1000, 300)
    ),
    scatter=call(lambda T, a, i: a.scatter(1, i, 1.0), floats(1000, 500), integers(500, 1000, 100)),
    scatter_add=call(
        lambda T, a, i: T.zeros(1000, 500).scatter_add(1, i, a), floats(1000, 300), integers(500, 1000, 300)
    ),
    scatter_reduce__amax=call(
        lambda T, a, i: T.zeros(1000, 500).scatter_reduce(1, i, a, "amax"), floats(1000, 300), integers(500, 1000, 300)
    ),
    index_add=call(lambda T, a, i: T.zeros(5000, 64).index_add(0, i, a), floats(20000, 64), integers(5000, 20000)),
    index_select=call(lambda T, a, i: a.index_select(0, i), floats(5000, 64), integers(5000, 20000)),
    index_fill=call(lambda T, a, i: a.index_fill(1, i, 0.0), matrix, integers(1000, 50)),
    take_along_dim=call(lambda T, a, i: T.take_along_dim(a, i, 1), floats(1000, 500), integers(500, 1000, 300)),
    two_indices=call(lambda T, a, i, j: a[i, j], matrix, integers(1000, 100000), integers(999, 100000)),
    mask=call(lambda T, a: a[a > 0], matrix),
    mask__assigned=call(lambda T, a: a.clone().masked_fill_(a > 0, 0.0).masked_scatter_(a > 1, a), matrix),
    nonzero=call(lambda T, a: (a > 0).nonzero(), matrix),
    where=call(lambda T, a, b: T.where(a > 0, a, b), matrix, matrix),
    topk_50_of_50000=call(lambda T, a: T.topk(a, 50), floats(16, 50000)),
    topk_5_of_1000=call(lambda T, a: T.topk(a, 5), floats(256, 1000)),
    sort_1000000=call(lambda T, a: T.sort(a), floats(1000000)),
    sort__columns=call(lambda T, a: a.sort(0), floats(500, 500)),
    sort__stable_integers=call(lambda T, a: a.sort(stable=True)[0], integers(100, 200000)),
    argsort__rows=call(lambda T, a: T.argsort(a, -1), floats(1000, 500)),
    kthvalue=call(lambda T, a: a.kthvalue(10, -1)[0], floats(1000, 500)),
    median__rows=call(lambda T, a: a.median(1), matrix),
    mode=call(lambda T, a: a.mode(1)[0], integers(20, 200, 200)),
    quantile=call(lambda T, a: T.quantile(a, 0.3, dim=1), matrix),
    unique=call(lambda T, a: T.unique(a, return_inverse=True, return_counts=True), integers(1000, 200000)),
    unique__rows=call(lambda T, a: T.unique(a, dim=0), integers(4, 5000, 3)),
    unique_consecutive=call(lambda T, a: T.unique_consecutive(a.sort()[0]), integers(1000, 100000)),
    isin=call(lambda T, a, b: T.isin(a, b), integers(10000, 100000), integers(10000, 500)),
    searchsorted=call(lambda T, a, b: T.searchsorted(a.sort()[0], b), floats(10000), floats(100000)),
    bucketize=call(lambda T, a: T.bucketize(a, T.linspace(-2, 2, 30)), floats(300000)),
    histc=call(lambda T, a: T.histc(a, 100), floats(1000000)),
    histogram=call(lambda T, a: T.histogram(a, 100), floats(300000)),
    histogramdd=call(lambda T, a: T.histogramdd(a, [10, 10])[0], floats(20000, 2)),
    bincount=call(lambda T, a: T.bincount(a), integers(1000, 1000000)),
    one_hot=call(lambda T, a: T.nn.functional.one_hot(a, 1000), integers(1000, 2000)),
    cat=call(lambda T, a, b: T.cat([a, b], 1), floats(64, 256, 400), floats(64, 256, 400)),
    cat__of_100=call(lambda T, a: T.cat([a] * 100), floats(100, 64)),
    stack__of_64=call(lambda T, a: T.stack([a] * 64), floats(100, 100)),
    repeat_interleave=call(lambda T, a: a.repeat_interleave(4, 0), floats(500, 500)),
    tile=call(lambda T, a: a.tile(4, 4), floats(200, 200)),
    roll=call(lambda T, a: a.roll((1, 2), (0, 1)), matrix),
    flip=call(lambda T, a: a.flip(1), matrix),
    rot90=call(lambda T, a: a.rot90(), matrix),
    tril=call(lambda T, a: a.tril(), matrix),
    diag_embed=call(lambda T, a: T.diag_embed(a), floats(100, 100)),
    meshgrid=call(lambda T, a, b: T.stack(T.meshgrid(a, b, indexing="ij"), -1), floats(300), floats(300)),
    cartesian_prod=call(lambda T, a, b: T.cartesian_prod(a, b), floats(300), floats(300)),
    combinations=call(lambda T, a: T.combinations(a), floats(300)),
    permute__copied=call(lambda T, a: a.permute(0, 2, 3, 1).contiguous(), floats(8, 64, 56, 56)),
    transpose__copied=call(lambda T, a: a.t().contiguous(), floats(2000, 2000)),
    string_of_views=call(string_of_views, floats(64, 64)),
    split__in_100=call(lambda T, a: a.split(10), floats(1000, 8)),
    rows__one_by_one=call(lambda T, a: list(a), floats(1000, 8)),
    getitem__in_a_loop=call(lambda T, a: [a[i] for i in range(1000)], floats(1000, 8)),
    item__in_a_loop=call(lambda T, a: [a[i, 0].item() for i in range(300)], floats(1000, 8)),
    setitem__in_a_loop=call(lambda T, a: [a.__setitem__((i, 0), 1.0) for i in range(300)], floats(1000, 8)),
    cumsum__rows=call(lambda T, a: a.cumsum(1), matrix),
    cumsum__columns=call(lambda T, a: a.cumsum(0), matrix),
    cummax=call(lambda T, a: a.cummax(1)[0], matrix),
    diff=call(lambda T, a: a.diff(dim=1), matrix),
    softmax__rows=call(lambda T, a: a.softmax(-1), matrix),
    softmax__columns=call(lambda T, a: a.softmax(0), matrix),
    logsumexp=call(lambda T, a: a.logsumexp(-1), matrix),
    std__columns=call(lambda T, a: a.std(0), matrix),
    norm__rows=call(lambda T, a: a.norm(dim=1), matrix),
    max__rows=call(lambda T, a: a.max(1), matrix),
    argmax__columns=call(lambda T, a: a.argmax(0), matrix),
    nansum=call(lambda T, a: a.nansum(1), matrix),
    aminmax=call(lambda T, a: a.aminmax(), matrix),
    pow_3=call(lambda T, a: a**3, matrix),
    division_by_columns=call(lambda T, a, b: a / b, matrix, floats(1000, 1)),
    clamp=call(lambda T, a: a.clamp(-1, 1), matrix),
    erf=call(lambda T, a: a.erf(), matrix),
    lerp=call(lambda T, a, b: a.lerp(b, 0.3), matrix, matrix),
    nan_to_num=call(lambda T, a: a.nan_to_num(), matrix),
    remainder=call(lambda T, a: a % 0.7, matrix),
    float16__chain=call(lambda T, a: (a.half() * 2 + 1).relu().exp(), lambda: floats(500, 500)() / 4),
    bfloat16__chain=call(lambda T, a: (a.bfloat16() * 2 + 1).tanh().sigmoid(), floats(500, 500)),
    bfloat16__sum=call(lambda T, a: a.bfloat16().sum(1), matrix),
    float16__softmax=call(lambda T, a: a.half().softmax(-1), floats(500, 1000)),
    int8__sum=call(lambda T, a: a.to(T.int8).sum(1), integers(100, 1000, 1000)),
    uint8__max=call(lambda T, a: a.to(T.uint8).max(), integers(255, 1000, 1000)),
    uint8__to_float=call(lambda T, a: a.to(T.uint8).float() / 255, integers(255, 3, 512, 512)),
    int64__sum=call(lambda T, a: a.sum(), integers(100, 1000000)),
    int64__division=call(lambda T, a: a // 7 + a % 7, integers(1000, 300000)),
    bool__sum=call(lambda T, a: (a > 0).sum(), matrix),
    bool__any=call(lambda T, a: (a > 3).any(1), matrix),
    bool__logic=call(lambda T, a, b: ((a > 0) & (b > 0) | ~(a > 1)).all(), matrix, matrix),
    bitwise=call(lambda T, a: (a << 2 ^ a) & 0xFF, integers(1000, 300000)),
    randn=call(lambda T: T.randn(1000000)),
    rand=call(lambda T: T.rand(1000000)),
    randperm=call(lambda T: T.randperm(1000000)),
    randint=call(lambda T: T.randint(0, 100, (1000000,))),
    bernoulli=call(lambda T, a: T.bernoulli(a.sigmoid()), matrix),
    dropout=call(lambda T, a: T.nn.functional.dropout(a, 0.3), matrix),
    multinomial=call(lambda T, a: T.multinomial(a.softmax(-1), 10), floats(64, 5000)),
    normal_distribution=call(lambda T, a: T.distributions.Normal(a, 1.0).log_prob(a).sum(), floats(100000)),
    categorical=call(lambda T, a: T.distributions.Categorical(logits=a).sample(), floats(1000, 50)),
    tolist=call(lambda T, a: a.tolist(), floats(100000)),
    tensor__of_a_list=call(lambda T: T.tensor(list(map(float, range(100000))))),
    columns_of_a_table=call(columns_of_a_table),
    DataLoader__batches_of_1=loaded(1),
    DataLoader__batches_of_64=loaded(64),
    save_and_load_100_MB=call(through_file, floats(25_000_000)),
    print=call(lambda T, a: repr(a), matrix),
    vmap=call(lambda T, a, b: T.func.vmap(lambda x, y: (x * y).sin().sum())(a, b), floats(1000, 50), floats(1000, 50)),
    jacrev=call(lambda T, a: T.func.jacrev(lambda x: (x**2).sin())(a), floats(100)),
    hessian=call(lambda T, a: T.func.hessian(lambda x: (x**3).sum())(a), floats(30)),
)
