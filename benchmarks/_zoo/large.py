"""Models as they are published: images of 224 pixels, texts of 128 tokens, twelve layers, with random weights."""

from __future__ import annotations

import importlib
from typing import Any

from .libraries import import_timm, import_transformers
from .models import Start

_BATCH, _LENGTH = 8, 128


def _image_model(name: str) -> Start:
    def start() -> tuple[Any, dict[str, Any]]:
        torch = importlib.import_module("torch")
        return import_timm().create_model(name), {"x": torch.randn(_BATCH, 3, 224, 224)}

    return start


def _language_model(name: str, **options: Any) -> Start:
    """`name` with `Config` and with what is behind the colon is the model's class."""
    family, _, head = name.partition(":")

    def start() -> tuple[Any, dict[str, Any]]:
        library, torch = import_transformers(), importlib.import_module("torch")
        ids = torch.randint(3, 8192, (_BATCH, _LENGTH))
        config = getattr(library, f"{family}Config")(**{"vocab_size": 8192, **options})
        return getattr(library, f"{family}{head}")(config), {"input_ids": ids, "labels": ids}

    return start


LARGE: dict[str, Start] = {
    "timm large resnet50": _image_model("resnet50"),
    "timm large mobilenetv3": _image_model("mobilenetv3_large_100"),
    "timm large efficientnet": _image_model("efficientnet_b0"),
    "timm large convnext": _image_model("convnext_tiny"),
    "timm large vit": _image_model("vit_small_patch16_224"),
    "timm large mixer": _image_model("mixer_s16_224"),
    "timm large swin": _image_model("swin_tiny_patch4_window7_224"),
    "large gpt2": _language_model("GPT2:LMHeadModel"),
    "large bert": _language_model("Bert:ForMaskedLM"),
    "large llama": _language_model(
        "Llama:ForCausalLM", hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8
    ),
    "large t5": _language_model("T5:ForConditionalGeneration", decoder_start_token_id=0),
}
"""Seven models of images and four of text, with what each is called with."""
