"""Layers and losses forward and backward, optimizers: batches of 1 and of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Case, call, enter, floats, integers, step


def attention(mask: str = "", batch: int = 8) -> Case:
    """Self-attention of 64 places, with a mask: of bools for keys, or of floats for what comes later."""

    def build(T: Any) -> Any:
        layer = T.nn.MultiheadAttention(256, 8, batch_first=True)
        options: dict[str, Any] = {}
        if mask == "padding":
            options["key_padding_mask"] = T.arange(64).expand(batch, 64) > 50
        if mask == "causal":
            options["attn_mask"] = T.nn.Transformer.generate_square_subsequent_mask(64)
        return lambda x: layer(x, x, x, need_weights=mask == "weights", **options)

    return step(build, floats(batch, 64, 256))


def training(optimizer: Callable[[Any, Any], Any]) -> Case:
    """A step over 100 parameters of 64 x 64."""

    def prepare(T: Any) -> Callable[[], Any]:
        T.manual_seed(0)
        parameters = [T.nn.Parameter(T.randn(64, 64)) for _ in range(100)]
        for each in parameters:
            each.grad = T.randn(64, 64)
        return optimizer(T.optim, parameters).step

    return prepare


def functional(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    """A layer without parameters."""
    return lambda T: lambda *tensors: getattr(T.nn.functional, name)(*tensors, *args, **options)


images = floats(4, 16, 32, 32)
enter(
    Conv1d_256__batch_of_8=step(lambda T: T.nn.Conv1d(256, 256, 3, padding=1), floats(8, 256, 200)),
    Conv2d_64__batch_of_4=step(lambda T: T.nn.Conv2d(64, 64, 3, padding=1), floats(4, 64, 56, 56)),
    Conv2d_64__batch_of_1=step(lambda T: T.nn.Conv2d(64, 64, 3, padding=1), floats(1, 64, 28, 28)),
    Conv2d__depthwise=step(lambda T: T.nn.Conv2d(128, 128, 3, padding=1, groups=128), floats(4, 128, 28, 28)),
    Conv2d__4_groups=step(lambda T: T.nn.Conv2d(128, 128, 3, padding=1, groups=4), floats(4, 128, 28, 28)),
    Conv2d__dilated=step(lambda T: T.nn.Conv2d(64, 64, 3, padding=2, dilation=2), floats(4, 64, 28, 28)),
    Conv2d__7x7_every_second=step(lambda T: T.nn.Conv2d(3, 64, 7, 2, 3), floats(4, 3, 112, 112)),
    Conv2d__1x1=step(lambda T: T.nn.Conv2d(256, 64, 1), floats(4, 256, 28, 28)),
    Conv3d=step(lambda T: T.nn.Conv3d(16, 32, 3, padding=1), floats(2, 16, 8, 28, 28)),
    ConvTranspose1d=step(lambda T: T.nn.ConvTranspose1d(64, 32, 4, 2, 1), floats(16, 64, 100)),
    ConvTranspose2d__batch_of_1=step(lambda T: T.nn.ConvTranspose2d(64, 32, 4, 2, 1), floats(1, 64, 16, 16)),
    ConvTranspose2d__batch_of_8=step(lambda T: T.nn.ConvTranspose2d(64, 32, 4, 2, 1), floats(8, 64, 16, 16)),
    ConvTranspose3d=step(lambda T: T.nn.ConvTranspose3d(16, 8, 2, 2), floats(2, 16, 8, 14, 14)),
    Linear__batch_of_1=step(lambda T: T.nn.Linear(512, 512), floats(1, 512)),
    Linear__batch_of_64=step(lambda T: T.nn.Linear(512, 512), floats(64, 512)),
    Bilinear=step(lambda T: T.nn.Bilinear(32, 32, 16), floats(64, 32), floats(64, 32)),
    RNN__batch_of_16=step(lambda T: T.nn.RNN(128, 128), floats(50, 16, 128)),
    LSTM__batch_of_1=step(lambda T: T.nn.LSTM(64, 64), floats(50, 1, 64)),
    LSTM__batch_of_16=step(lambda T: T.nn.LSTM(128, 256, batch_first=True), floats(16, 100, 128)),
    LSTM__2_layers=step(lambda T: T.nn.LSTM(64, 64, 2), floats(30, 8, 64)),
    GRU__batch_of_1=step(lambda T: T.nn.GRU(64, 64), floats(50, 1, 64)),
    GRU__both_ways=step(lambda T: T.nn.GRU(128, 128, bidirectional=True), floats(60, 16, 128)),
    GRUCell=step(lambda T: T.nn.GRUCell(64, 64), floats(16, 64)),
    MultiheadAttention=attention(),
    MultiheadAttention__batch_of_1=attention(batch=1),
    MultiheadAttention__padding=attention("padding"),
    MultiheadAttention__causal=attention("causal"),
    MultiheadAttention__weights=attention("weights"),
    TransformerEncoderLayer=step(
        lambda T: T.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0), floats(8, 64, 256)
    ),
    TransformerDecoderLayer=step(
        lambda T: T.nn.TransformerDecoderLayer(128, 4, 512, batch_first=True, dropout=0.0),
        floats(8, 32, 128),
        floats(8, 32, 128),
    ),
    scaled_dot_product__causal=step(
        functional("scaled_dot_product_attention", is_causal=True),
        floats(4, 8, 64, 32), floats(4, 8, 64, 32), floats(4, 8, 64, 32),
    ),
    LayerNorm=step(lambda T: T.nn.LayerNorm(768), floats(16, 128, 768)),
    RMSNorm=step(lambda T: T.nn.RMSNorm(768), floats(16, 128, 768)),
    BatchNorm1d=step(lambda T: T.nn.BatchNorm1d(256), floats(64, 256)),
    BatchNorm2d=step(lambda T: T.nn.BatchNorm2d(64), floats(8, 64, 56, 56)),
    GroupNorm__batch_of_1=step(lambda T: T.nn.GroupNorm(8, 64), floats(1, 64, 28, 28)),
    GroupNorm__batch_of_8=step(lambda T: T.nn.GroupNorm(8, 64), floats(8, 64, 56, 56)),
    InstanceNorm2d=step(lambda T: T.nn.InstanceNorm2d(64, affine=True), floats(8, 64, 56, 56)),
    LocalResponseNorm=step(lambda T: T.nn.LocalResponseNorm(5), images),
    PReLU=step(lambda T: T.nn.PReLU(16), images),
    GLU=step(functional("glu", 1), images),
    Softplus=step(functional("softplus"), images),
    Mish=step(functional("mish"), images),
    max_pool1d=step(functional("max_pool1d", 2), floats(16, 64, 200)),
    max_pool2d=step(functional("max_pool2d", 2), floats(8, 64, 56, 56)),
    max_pool2d__3_every_second=step(functional("max_pool2d", 3, 2, 1), floats(4, 64, 56, 56)),
    max_pool3d=step(functional("max_pool3d", 2), floats(2, 16, 8, 28, 28)),
    avg_pool2d=step(functional("avg_pool2d", 3, 2, 1), floats(8, 64, 56, 56)),
    avg_pool3d=step(functional("avg_pool3d", 2), floats(2, 16, 8, 28, 28)),
    lp_pool2d=step(functional("lp_pool2d", 2, 2), images),
    adaptive_avg_pool2d_to_1=step(functional("adaptive_avg_pool2d", 1), floats(8, 512, 14, 14)),
    adaptive_avg_pool2d_to_7=step(functional("adaptive_avg_pool2d", 7), floats(4, 64, 20, 20)),
    adaptive_max_pool2d=step(functional("adaptive_max_pool2d", 7), floats(4, 64, 20, 20)),
    fractional_max_pool2d=call(
        lambda T, x: T.nn.functional.fractional_max_pool2d(x, 2, output_ratio=(0.7, 0.7)), images
    ),
    max_unpool2d=call(
        lambda T, x: T.nn.functional.max_unpool2d(*T.nn.functional.max_pool2d(x, 2, return_indices=True), 2), images
    ),
    interpolate_nearest=step(functional("interpolate", scale_factor=2), floats(4, 32, 56, 56)),
    interpolate_bilinear=step(functional("interpolate", scale_factor=2, mode="bilinear"), floats(4, 32, 56, 56)),
    interpolate_bilinear__down=step(
        functional("interpolate", size=(20, 20), mode="bilinear", antialias=True), images
    ),
    interpolate_bicubic=step(functional("interpolate", scale_factor=2, mode="bicubic"), images),
    interpolate_area=step(functional("interpolate", size=(10, 10), mode="area"), images),
    interpolate_linear=step(functional("interpolate", scale_factor=2, mode="linear"), floats(8, 32, 200)),
    interpolate_trilinear=step(functional("interpolate", scale_factor=2, mode="trilinear"), floats(1, 8, 8, 16, 16)),
    grid_sample=step(functional("grid_sample", align_corners=False), floats(4, 16, 64, 64), floats(4, 64, 64, 2)),
    grid_sample_nearest=step(
        functional("grid_sample", mode="nearest", align_corners=False), images, floats(4, 32, 32, 2)
    ),
    affine_grid=step(functional("affine_grid", (4, 3, 64, 64), align_corners=False), floats(4, 2, 3)),
    pixel_shuffle=step(functional("pixel_shuffle", 2), floats(4, 64, 32, 32)),
    pixel_unshuffle=step(functional("pixel_unshuffle", 2), floats(4, 16, 64, 64)),
    channel_shuffle=call(lambda T, x: T.nn.functional.channel_shuffle(x, 4), floats(4, 64, 32, 32)),
    unfold=step(functional("unfold", 3, padding=1), floats(4, 32, 32, 32)),
    fold=step(functional("fold", (32, 32), 3, padding=1), floats(4, 144, 1024)),
    pad_reflect=step(functional("pad", (2, 2, 2, 2), mode="reflect"), floats(8, 32, 64, 64)),
    pad_replicate=step(functional("pad", (2, 2, 2, 2), mode="replicate"), floats(8, 32, 64, 64)),
    pad_circular=step(functional("pad", (2, 2, 2, 2), mode="circular"), floats(8, 32, 64, 64)),
    Embedding=call(
        lambda T, w, i: T.nn.functional.embedding(i, w.requires_grad_()).sum().backward(),
        floats(20000, 256), integers(20000, 32, 128),
    ),
    EmbeddingBag=call(
        lambda T, w, i: T.nn.functional.embedding_bag(i, w), floats(20000, 64), integers(20000, 512, 20)
    ),
    EmbeddingBag__max=call(
        lambda T, w, i: T.nn.functional.embedding_bag(i, w, mode="max"), floats(20000, 64), integers(20000, 512, 20)
    ),
    EmbeddingBag__step=call(
        lambda T, w, i: T.nn.functional.embedding_bag(i, w.requires_grad_()).sum().backward(),
        floats(2000, 64), integers(2000, 512, 20),
    ),
    cross_entropy__32000_classes=call(
        lambda T, a, t: T.nn.functional.cross_entropy(a.requires_grad_(), t).backward(),
        floats(128, 32000), integers(32000, 128),
    ),
    cross_entropy__of_images=call(
        lambda T, a, t: T.nn.functional.cross_entropy(a.requires_grad_(), t).backward(),
        floats(4, 20, 64, 64), integers(20, 4, 64, 64),
    ),
    ctc_loss=call(
        lambda T, a, t: T.nn.functional.ctc_loss(
            a.requires_grad_().log_softmax(-1), t + 1, T.full((8,), 100), T.full((8,), 20)
        ).backward(),
        floats(100, 8, 40), integers(39, 8, 20),
    ),
    triplet_margin_loss=step(functional("triplet_margin_loss"), floats(512, 128), floats(512, 128), floats(512, 128)),
    cosine_similarity=step(functional("cosine_similarity"), floats(1000, 512), floats(1000, 512)),
    smooth_l1_loss=step(functional("smooth_l1_loss"), floats(1000, 500), floats(1000, 500)),
    huber_loss=step(functional("huber_loss"), floats(1000, 500), floats(1000, 500)),
    multi_margin_loss=step(functional("multi_margin_loss"), floats(512, 100), integers(100, 512)),
    kl_div=call(
        lambda T, a, b: T.nn.functional.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean"),
        floats(1000, 500), floats(1000, 500),
    ),
    bce_with_logits=call(
        lambda T, a, b: T.nn.functional.binary_cross_entropy_with_logits(a.requires_grad_(), b.sigmoid()).backward(),
        floats(1000, 500), floats(1000, 500),
    ),
    SGD__100_parameters=training(lambda optim, each: optim.SGD(each, 1e-3, momentum=0.9)),
    Adam__100_parameters=training(lambda optim, each: optim.Adam(each)),
    AdamW__100_parameters=training(lambda optim, each: optim.AdamW(each)),
    RMSprop__100_parameters=training(lambda optim, each: optim.RMSprop(each)),
    Adagrad__100_parameters=training(lambda optim, each: optim.Adagrad(each)),
    NAdam__100_parameters=training(lambda optim, each: optim.NAdam(each)),
    Adafactor__100_parameters=training(lambda optim, each: optim.Adafactor(each)),
)  # fmt: skip
