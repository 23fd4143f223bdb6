"""Trace models of timm and transformers by fx, and compare the code with what PyTorch's fx writes.

    python tools/trace_models.py torch transformers theirs.json
    python tools/trace_models.py flambeau transformers ours.json
    python tools/trace_models.py compare theirs.json ours.json

The first two run in environments with PyTorch, or with Flambeau in its place, and the library in question. Of timm
whole models are traced; of transformers, whose models ask for values, each class of module inside of them.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIMM = (
    "resnet18 resnet50 resnext50_32x4d seresnet18 legacy_seresnet18 densenet121 mobilenetv2_100 mobilenetv3_small_100 "
    "efficientnet_b0 efficientnet_lite0 mnasnet_small fbnetc_100 ghostnet_100 regnetx_002 regnety_002 repvgg_a0 vgg11 "
    "vgg11_bn vit_tiny_patch16_224 deit_tiny_patch16_224 mixer_s32_224 resmlp_12_224 gmlp_ti16_224 convnext_atto "
    "convnextv2_atto poolformer_s12 hardcorenas_a dla34 dpn48b hrnet_w18_small inception_v3 xception41 selecsls42 "
    "spnasnet_100 tinynet_e skresnet18 res2net50_26w_4s edgenext_xx_small mobileone_s0 tf_efficientnet_b0"
)
_SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
_TEXT = {**_SMALL, "vocab_size": 20}
_LLAMA = {**_TEXT, "num_key_value_heads": 2}
_IMAGES = {**_SMALL, "image_size": 16, "patch_size": 8}
_ONE_STAGE = {"num_encoder_blocks": 1, "depths": [1], "sr_ratios": [1], "hidden_sizes": [8], "patch_sizes": [3]}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "Bert": _TEXT,
    "GPT2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 20},
    "T5": {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 20},
    "Llama": _LLAMA,
    "Roberta": _TEXT,
    "DistilBert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "vocab_size": 20},
    "ViT": _IMAGES,
    "Electra": {**_TEXT, "embedding_size": 16},
    "Mistral": _LLAMA,
    "Qwen2": _LLAMA,
    "OPT": {**_TEXT, "ffn_dim": 16, "word_embed_proj_dim": 16},
    "Albert": {**_TEXT, "embedding_size": 16},
    "GPTNeoX": _TEXT,
    "Bloom": {"hidden_size": 16, "n_layer": 1, "n_head": 2, "vocab_size": 20},
    "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]},
    "ConvNext": {"hidden_sizes": [8, 8], "depths": [1, 1], "num_stages": 2},
    "Segformer": {**_ONE_STAGE, "strides": [2], "num_attention_heads": [1], "mlp_ratios": [2]},
    "Wav2Vec2": {**_TEXT, "conv_dim": (8, 8), "conv_stride": (2, 2), "conv_kernel": (3, 3),
                 "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
    "Gemma": {**_LLAMA, "head_dim": 8},
    "Phi": _LLAMA,
    "DeiT": _IMAGES,
    "MPNet": _TEXT,
    "CLIPVision": {**_IMAGES, "projection_dim": 8},
}  # fmt: skip


def modules(library: str) -> Iterator[tuple[str, Any]]:
    """What is traced, by name."""
    found = importlib.import_module(library)
    if library == "timm":
        for name in TIMM.split():
            yield name, found.create_model(name)
        return
    for name, settings in TRANSFORMERS.items():
        model = getattr(found, f"{name}Model")(getattr(found, f"{name}Config")(**settings))
        classes = {type(each): each for path, each in model.named_modules() if path}
        for cls, module in classes.items():
            if not cls.__module__.startswith(("torch.nn", "flambeau.nn")):
                yield f"{name}.{cls.__name__}", module


def traced(library: str) -> dict[str, str]:
    """The code of each module, or its error."""
    fx = importlib.import_module("torch").fx
    return {name: _code(fx, module.eval()) for name, module in modules(library)}


def _code(fx: Any, module: Any) -> str:
    try:
        return str(fx.symbolic_trace(module).code)
    except Exception as error:  # whatever the model does with a proxy
        return f"{ERROR}{type(error).__name__}"


ERROR = "error: "


def compare(theirs: dict[str, str], ours: dict[str, str]) -> int:
    """Print what differs; says how many do."""
    differing = [name for name, code in theirs.items() if ours.get(name) != code]
    whole = [name for name, code in theirs.items() if not code.startswith(ERROR)]
    equal = len(set(whole) - set(differing))
    models = len({name.partition(".")[0] for name in theirs})
    print(
        f"{models} models, {len(theirs)} modules: PyTorch traces {len(whole)}, {equal} of these have the same code here"
    )
    print(*[f"differs: {name}" for name in differing], sep="\n")
    return len(differing)


def main(which: str, first: str, second: str) -> int:
    """Trace, or compare."""
    warnings.simplefilter("ignore")
    if which == "compare":
        return compare(*[json.loads(Path(each).read_text(encoding="utf-8")) for each in (first, second)])
    if which == "flambeau":
        importlib.import_module("flambeau.as_torch")
    Path(second).write_text(json.dumps(traced(first)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
