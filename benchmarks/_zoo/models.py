"""The models: small configurations of timm and transformers, with random weights.

Each is a function that makes a model and what it is called with, under whichever framework stands for `torch`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .libraries import import_timm, import_transformers
from .networks import NETWORKS

Start = Callable[[], tuple[Any, dict[str, Any]]]
"""A model, and the arguments of its `forward`, labels included where it computes a loss itself."""

_BATCH, _LENGTH, _VOCABULARY, _CLASSES = 4, 32, 512, 10


def _torch() -> Any:
    return importlib.import_module("torch")


def _image_model(name: str, size: int, **options: Any) -> Start:
    def start() -> tuple[Any, dict[str, Any]]:
        model = import_timm().create_model(name, num_classes=_CLASSES, **options)
        return model, {"x": _torch().randn(_BATCH, 3, size, size)}

    return start


def _language_model(name: str, labels: bool = True, **options: Any) -> Start:
    """A model of text: `name` with `Config` and with what is behind the colon is its class."""
    family, _, head = name.partition(":")

    def start() -> tuple[Any, dict[str, Any]]:
        library = import_transformers()
        config = getattr(library, f"{family}Config")(vocab_size=_VOCABULARY, **options)
        ids = _torch().randint(3, _VOCABULARY, (_BATCH, _LENGTH))
        return getattr(library, f"{family}{head}")(config), {"input_ids": ids, **({"labels": ids} if labels else {})}

    return start


def _vision_transformer() -> tuple[Any, dict[str, Any]]:
    library, torch = import_transformers(), _torch()
    config = library.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16
    )
    pixels = torch.randn(_BATCH, 3, 64, 64)
    return library.ViTForImageClassification(config), {"pixel_values": pixels, "labels": torch.arange(_BATCH) % 2}


def _whisper() -> tuple[Any, dict[str, Any]]:
    library, torch = import_transformers(), _torch()
    config = library.WhisperConfig(
        vocab_size=_VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16, max_source_positions=50,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    labels = torch.randint(3, _VOCABULARY, (_BATCH, _LENGTH))
    features = torch.randn(_BATCH, 16, 100)
    return library.WhisperForConditionalGeneration(config), {"input_features": features, "labels": labels}


def _speech(name: str, **options: Any) -> Start:
    """A model of sound waves."""
    family, _, head = name.partition(":")

    def start() -> tuple[Any, dict[str, Any]]:
        library = import_transformers()
        config = getattr(library, f"{family}Config")(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16),
            conv_stride=(5, 4), conv_kernel=(10, 8), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4, apply_spec_augment=False, layerdrop=0.0, **options,
        )  # fmt: skip
        return getattr(library, f"{family}{head}")(config), {"input_values": _torch().randn(_BATCH, 800)}

    return start


def _picture_model(name: str, size: int = 64, **options: Any) -> Start:
    """A model of transformers that takes images."""
    family, _, head = name.partition(":")

    def start() -> tuple[Any, dict[str, Any]]:
        library = import_transformers()
        config = getattr(library, f"{family}Config")(**options)
        return getattr(library, f"{family}{head}")(config), {"pixel_values": _torch().randn(_BATCH, 3, size, size)}

    return start


def _clip() -> tuple[Any, dict[str, Any]]:
    library, torch = import_transformers(), _torch()
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = library.CLIPConfig(
        text_config={**sizes, "vocab_size": _VOCABULARY, "max_position_embeddings": 32, "eos_token_id": 2},
        vision_config={**sizes, "image_size": 32, "patch_size": 8}, projection_dim=16,
    )  # fmt: skip
    ids = torch.randint(3, _VOCABULARY, (_BATCH, 8))
    inputs = {"input_ids": ids, "pixel_values": torch.randn(_BATCH, 3, 32, 32), "return_loss": True}
    return library.CLIPModel(config), inputs


_ENCODER = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}
_DECODER = {**_ENCODER, "num_key_value_heads": 2}

MODELS: dict[str, Start] = {
    "timm resnet18": _image_model("resnet18", 64),
    "timm resnet50": _image_model("resnet50", 64),
    "timm convnext": _image_model("convnext_atto", 64),
    "timm vit": _image_model("vit_tiny_patch16_224", 64, img_size=64),
    "timm mixer": _image_model("mixer_s32_224", 64, img_size=64),
    "timm efficientnet": _image_model("efficientnet_b0", 64),
    "timm mobilenetv3": _image_model("mobilenetv3_small_100", 64),
    "timm regnet": _image_model("regnetx_002", 64),
    "timm densenet": _image_model("densenet121", 64),
    "timm poolformer": _image_model("poolformer_s12", 64),
    "timm swin": _image_model("swin_tiny_patch4_window7_224", 56, img_size=56),
    "timm resnetv2": _image_model("resnetv2_50", 64),
    "timm mobilenetv2": _image_model("mobilenetv2_035", 64),
    "timm mobilenetv4": _image_model("mobilenetv4_conv_small_035", 64),
    "timm mnasnet": _image_model("mnasnet_small", 64),
    "timm ghostnet": _image_model("ghostnet_050", 64),
    "timm lcnet": _image_model("lcnet_050", 64),
    "timm tinynet": _image_model("tinynet_e", 64),
    "timm repvgg": _image_model("repvgg_a0", 64),
    "timm dla": _image_model("dla46_c", 64),
    "timm hrnet": _image_model("hrnet_w18_small", 64),
    "timm res2net": _image_model("res2net50_14w_8s", 64),
    "timm resnest": _image_model("resnest14d", 64),
    "timm skresnet": _image_model("skresnet18", 64),
    "timm selecsls": _image_model("selecsls42", 64),
    "timm cspnet": _image_model("cspresnet50", 64),
    "timm vovnet": _image_model("ese_vovnet19b_dw", 64),
    "timm rexnet": _image_model("rexnet_100", 64),
    "timm hgnet": _image_model("hgnetv2_b0", 64),
    "timm nfnet": _image_model("nf_regnet_b0", 64),
    "timm mobilevit": _image_model("mobilevit_xxs", 64),
    "timm edgenext": _image_model("edgenext_xx_small", 64),
    "timm efficientvit": _image_model("efficientvit_b0", 64),
    "timm fastvit": _image_model("fastvit_t8", 64),
    "timm pvt": _image_model("pvt_v2_b0", 64),
    "timm deit": _image_model("deit_tiny_distilled_patch16_224", 64, img_size=64),
    "timm cait": _image_model("cait_xxs24_224", 64, img_size=64, depth=4),
    "timm pit": _image_model("pit_ti_224", 64, img_size=64),
    "timm xcit": _image_model("xcit_nano_12_p16_224", 64, img_size=64),
    "timm eva": _image_model("eva02_tiny_patch14_224", 56, img_size=56),
    "timm coat": _image_model("coat_lite_tiny", 64, img_size=64),
    "timm focalnet": _image_model("focalnet_tiny_srf", 64),
    "timm inception-next": _image_model("inception_next_atto", 64),
    "timm starnet": _image_model("starnet_s050", 64),
    "gpt2": _language_model("GPT2:LMHeadModel", n_positions=64, n_embd=64, n_layer=2, n_head=4),
    "llama": _language_model("Llama:ForCausalLM", **_DECODER),
    "mistral": _language_model("Mistral:ForCausalLM", **_DECODER),
    "qwen2": _language_model("Qwen2:ForCausalLM", **_DECODER),
    "mixtral": _language_model("Mixtral:ForCausalLM", num_local_experts=4, **_DECODER),
    "opt": _language_model(
        "OPT:ForCausalLM", hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, word_embed_proj_dim=64,
    ),
    "gpt-neox": _language_model("GPTNeoX:ForCausalLM", **_ENCODER),
    "gpt-j": _language_model("GPTJ:ForCausalLM", n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_positions=64),
    "gpt-neo": _language_model(
        "GPTNeo:ForCausalLM", hidden_size=64, num_layers=2, num_heads=4, intermediate_size=128,
        attention_types=[[["global", "local"], 1]], max_position_embeddings=64,
    ),
    "bloom": _language_model("Bloom:ForCausalLM", hidden_size=64, n_layer=2, n_head=4),
    "falcon": _language_model("Falcon:ForCausalLM", hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
    "phi": _language_model("Phi:ForCausalLM", **_ENCODER),
    "gemma": _language_model("Gemma:ForCausalLM", head_dim=16, **_DECODER),
    "gemma2": _language_model("Gemma2:ForCausalLM", head_dim=16, **_DECODER),
    "qwen3": _language_model("Qwen3:ForCausalLM", head_dim=16, **_DECODER),
    "olmo": _language_model("Olmo:ForCausalLM", **_DECODER),
    "cohere": _language_model("Cohere:ForCausalLM", **_DECODER),
    "stablelm": _language_model("StableLm:ForCausalLM", **_DECODER),
    "starcoder2": _language_model("Starcoder2:ForCausalLM", **_DECODER),
    "mamba2": _language_model(
        "Mamba2:ForCausalLM", hidden_size=64, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=16, n_groups=1,
        chunk_size=16,
    ),
    "mamba": _language_model("Mamba:ForCausalLM", hidden_size=64, num_hidden_layers=2, state_size=8),
    "bert": _language_model("Bert:ForMaskedLM", **_ENCODER),
    "roberta": _language_model("Roberta:ForMaskedLM", **_ENCODER),
    "distilbert": _language_model("DistilBert:ForMaskedLM", dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    "electra": _language_model("Electra:ForMaskedLM", embedding_size=64, **_ENCODER),
    "albert": _language_model("Albert:ForMaskedLM", embedding_size=32, **_ENCODER),
    "deberta": _language_model(
        "DebertaV2:ForMaskedLM", relative_attention=True, pos_att_type=["p2c", "c2p"], **_ENCODER
    ),
    "mpnet": _language_model("MPNet:ForMaskedLM", **_ENCODER),
    "convbert": _language_model("ConvBert:ForMaskedLM", embedding_size=64, **_ENCODER),
    "fnet": _language_model(
        "FNet:ForMaskedLM", hidden_size=64, num_hidden_layers=2, intermediate_size=128, max_position_embeddings=64
    ),
    "xlnet": _language_model("XLNet:LMHeadModel", d_model=64, n_layer=2, n_head=4, d_inner=128),
    "funnel": _language_model(
        "Funnel:ForMaskedLM", d_model=64, block_sizes=[1, 1], n_head=4, d_head=16, d_inner=128
    ),
    "t5": _language_model(
        "T5:ForConditionalGeneration", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    ),
    "bart": _language_model(
        "Bart:ForConditionalGeneration", d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64,
    ),
    "qwen2-moe": _language_model(
        "Qwen2Moe:ForCausalLM", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
        shared_expert_intermediate_size=32, **_DECODER,
    ),
    "granite": _language_model("Granite:ForCausalLM", **_DECODER),
    "codegen": _language_model(
        "CodeGen:ForCausalLM", n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_positions=64, n_ctx=64
    ),
    "gpt-bigcode": _language_model("GPTBigCode:ForCausalLM", n_positions=64, n_embd=64, n_layer=2, n_head=4),
    "biogpt": _language_model("BioGpt:ForCausalLM", **_ENCODER),
    "rwkv": _language_model("Rwkv:ForCausalLM", hidden_size=64, num_hidden_layers=2, attention_hidden_size=64),
    "xlm-roberta": _language_model("XLMRoberta:ForMaskedLM", **_ENCODER),
    "squeezebert": _language_model("SqueezeBert:ForMaskedLM", embedding_size=64, **_ENCODER),
    "mobilebert": _language_model(
        "MobileBert:ForMaskedLM", embedding_size=32, true_hidden_size=32, intra_bottleneck_size=32, **_ENCODER
    ),
    "roformer": _language_model("RoFormer:ForMaskedLM", embedding_size=64, **_ENCODER),
    "rembert": _language_model("RemBert:ForMaskedLM", input_embedding_size=32, output_embedding_size=32, **_ENCODER),
    "nystromformer": _language_model("Nystromformer:ForMaskedLM", **_ENCODER),
    "modernbert": _language_model("ModernBert:ForMaskedLM", pad_token_id=0, **_ENCODER),
    "pegasus": _language_model(
        "Pegasus:ForConditionalGeneration", d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64,
    ),
    "mbart": _language_model(
        "MBart:ForConditionalGeneration", d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64,
    ),
    "vit": _vision_transformer,
    "dinov2": _picture_model(
        "Dinov2:ForImageClassification", hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=56,
        patch_size=14, size=56,
    ),
    "convnextv2": _picture_model(
        "ConvNextV2:ForImageClassification", hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1]
    ),
    "segformer": _picture_model(
        "Segformer:ForImageClassification", depths=[1, 1, 1, 1], hidden_sizes=[16, 16, 32, 32],
        num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=32,
    ),
    "clip": _clip,
    "wav2vec2": _speech("Wav2Vec2:ForCTC", vocab_size=32),
    "hubert": _speech("Hubert:ForCTC", vocab_size=32),
    "whisper": _whisper,
    **NETWORKS,
}  # fmt: skip
