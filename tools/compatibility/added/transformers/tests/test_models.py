"""The tests that transformers' source distribution has for every model, for models of many architectures.

The distribution holds `tests/test_modeling_common.py` and not the models' own files: small models stand here.
"""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import transformers
from tests.generation.test_utils import GenerationTesterMixin
from tests.test_modeling_common import ModelTesterMixin

_TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LLAMA = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8}
_EXPERTS = {**_LLAMA, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_IMAGE = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 30,
    "patch_size": 10,
    "num_channels": 3,
}
_TRANSLATOR = {
    "vocab_size": 99,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_SPEECH = {
    **_TEXT,
    "conv_dim": (32, 32),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 8),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 2,
    "mask_time_prob": 0.5,
    "mask_time_length": 2,
}
_STAGES = {"num_channels": 3, "hidden_sizes": [8, 16], "depths": [1, 1]}
_DECODER = ("Model", "ForCausalLM", "ForSequenceClassification")
_ENCODER = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
_BOTH = ("Model", "ForConditionalGeneration")
_PICTURES = ("Model", "ForImageClassification")

_ARCHITECTURES: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, Any]]] = {
    "Llama": ("decoder", (*_DECODER, "ForTokenClassification", "ForQuestionAnswering"), _LLAMA),
    "Mistral": ("decoder", _DECODER, {**_LLAMA, "sliding_window": 4}),
    "Mixtral": ("decoder", _DECODER, {**_LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "Qwen2": ("decoder", _DECODER, _LLAMA),
    "Qwen3": ("decoder", _DECODER, _LLAMA),
    "Qwen3Moe": ("decoder", _DECODER, {**_EXPERTS, "num_experts": 4, "decoder_sparse_step": 1}),
    "Gemma": ("decoder", _DECODER, _LLAMA),
    "Gemma2": ("decoder", _DECODER, {**_LLAMA, "query_pre_attn_scalar": 8, "sliding_window": 4}),
    "Phi": ("decoder", _DECODER, {**_TEXT, "partial_rotary_factor": 0.5}),
    "Phi3": ("decoder", _DECODER, _LLAMA),
    "Olmo2": ("decoder", ("Model", "ForCausalLM"), _LLAMA),
    "GptOss": (
        "decoder",
        ("Model", "ForCausalLM"),
        {**_LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    ),
    "DeepseekV3": (
        "decoder",
        ("Model", "ForCausalLM"),
        {
            **_TEXT,
            "num_key_value_heads": 4,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 16,
        },
    ),
    "GPT2": (
        "decoder",
        ("Model", "LMHeadModel", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
        {
            "vocab_size": 99,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "bos_token_id": 98,
            "eos_token_id": 98,
            "pad_token_id": 98,
        },
    ),
    "GPTNeoX": ("decoder", (*_DECODER, "ForQuestionAnswering"), _TEXT),
    "GPTJ": (
        "decoder",
        _DECODER,
        {
            "vocab_size": 99,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "rotary_dim": 4,
            "bos_token_id": 98,
            "eos_token_id": 98,
            "pad_token_id": 98,
        },
    ),
    "OPT": ("decoder", _DECODER, {**_TEXT, "ffn_dim": 40, "word_embed_proj_dim": 16, "pad_token_id": 1}),
    "Bloom": ("decoder", _DECODER, {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 3}),
    "Falcon": ("decoder", _DECODER, {**_TEXT, "new_decoder_architecture": False}),
    "Mamba": (
        "recurrent",
        ("Model", "ForCausalLM"),
        {"vocab_size": 99, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "pad_token_id": 0},
    ),
    "Bert": ("encoder", (*_ENCODER, "ForNextSentencePrediction", "LMHeadModel"), {**_TEXT, "is_decoder": False}),
    "Roberta": ("encoder", (*_ENCODER, "ForCausalLM"), {**_TEXT, "pad_token_id": 1, "bos_token_id": 0}),
    "DistilBert": (
        "encoder",
        _ENCODER,
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 64},
    ),
    "Electra": ("encoder", (*_ENCODER, "ForPreTraining"), {**_TEXT, "embedding_size": 16}),
    "Albert": ("encoder", _ENCODER, {**_TEXT, "embedding_size": 16, "num_hidden_groups": 2}),
    "DebertaV2": ("encoder", _ENCODER[:-1], {**_TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "ModernBert": ("encoder", _ENCODER[:-1], {**_TEXT, "local_attention": 8, "global_attn_every_n_layers": 2}),
    "T5": (
        "both",
        (*_BOTH, "ForQuestionAnswering"),
        {
            "vocab_size": 99,
            "d_model": 32,
            "d_ff": 40,
            "d_kv": 8,
            "num_layers": 2,
            "num_decoder_layers": 2,
            "num_heads": 4,
            "relative_attention_num_buckets": 8,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
        },
    ),
    "Bart": (
        "both",
        (*_BOTH, "ForQuestionAnswering"),
        {**_TRANSLATOR, "forced_eos_token_id": None},
    ),
    "MBart": ("both", _BOTH, {**_TRANSLATOR, "forced_eos_token_id": None}),
    "Pegasus": ("both", _BOTH, {**_TRANSLATOR, "pad_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": None}),
    "M2M100": ("both", _BOTH, _TRANSLATOR),
    "Whisper": (
        "speech",
        _BOTH,
        {
            **_TRANSLATOR,
            "num_mel_bins": 80,
            "max_source_positions": 30,
            "max_target_positions": 40,
            "pad_token_id": 0,
            "begin_suppress_tokens": None,
            "suppress_tokens": None,
        },
    ),
    "Wav2Vec2": ("wave", ("Model", "ForCTC", "ForSequenceClassification"), _SPEECH),
    "Hubert": ("wave", ("Model", "ForCTC", "ForSequenceClassification"), _SPEECH),
    "ViT": ("image", (*_PICTURES, "ForMaskedImageModeling"), {**_IMAGE, "encoder_stride": 10}),
    "DeiT": ("image", (*_PICTURES, "ForMaskedImageModeling"), {**_IMAGE, "encoder_stride": 10}),
    "Dinov2": ("image", _PICTURES, {**_IMAGE, "mlp_ratio": 2}),
    "Beit": ("image", _PICTURES, {**_IMAGE, "vocab_size": 99}),
    "Swin": (
        "pyramid",
        _PICTURES,
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 2},
    ),
    "ConvNext": ("convolution", _PICTURES, {**_STAGES, "num_stages": 2}),
    "ResNet": ("convolution", _PICTURES, {**_STAGES, "embedding_size": 8, "layer_type": "basic"}),
    "CLIPText": ("encoder", ("Model",), {**_TEXT, "projection_dim": 16}),
    "CLIPVision": ("image", ("Model",), {**_IMAGE, "projection_dim": 16}),
    "CLIP": ("pair", ("Model",), {"projection_dim": 16}),
    "Siglip": ("pair", ("Model",), {}),
}
"""The name before `Config` and `Model`; what it reads; the classes; the configuration."""


class _Tester:
    """What the common tests ask of a model: a small configuration, and inputs that fit."""

    is_training = True
    batch_size, seq_length, num_choices = 3, 7, 4
    num_mel_bins, image_size, patch_size, num_masks = 80, 30, 10, 4

    def __init__(self, parent: unittest.TestCase, name: str) -> None:
        self.parent, self.name = parent, name
        self.reads, _, self.values = _ARCHITECTURES[name]
        for key, value in self.values.items():
            setattr(self, key, value)
        self.num_hidden_layers, self.num_attention_heads, self.hidden_size = 2, 4, self.values.get("d_model", 32)
        if self.reads == "both":
            self.encoder_seq_length = self.decoder_seq_length = self.key_length = self.seq_length
        elif self.reads == "image":
            self.seq_length = 9 + {"DeiT": 2}.get(name, 1)
            self.mask_length = 9
        elif self.reads == "pyramid":
            self.seq_length = 256
        elif self.reads == "speech":
            self.encoder_seq_length, self.decoder_seq_length = 30, self.seq_length
        elif self.reads == "wave":
            self.seq_length = self.encoder_seq_length = self.key_length = 62
        elif self.reads == "pair":
            self.text_config = {**_TEXT, "projection_dim": 16}
            self.vision_config = {**_IMAGE, "projection_dim": 16}

    def get_config(self) -> Any:
        """A new configuration."""
        make = getattr(transformers, f"{self.name}Config")
        if self.reads == "pair":
            return make(text_config=dict(self.text_config), vision_config=dict(self.vision_config), **self.values)
        return make(**{key: list(value) if isinstance(value, list) else value for key, value in self.values.items()})

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, torch.Tensor]]:
        """A new configuration, and inputs, drawn anew."""
        return self.get_config(), getattr(self, f"_{self.reads}")()

    prepare_config_and_inputs_for_generate = prepare_config_and_inputs_for_common

    def _tokens(self) -> torch.Tensor:
        return torch.randint(3, 99, (self.batch_size, self.seq_length))

    def _decoder(self) -> dict[str, torch.Tensor]:
        tokens = self._tokens()
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}

    _encoder = _decoder

    def _recurrent(self) -> dict[str, torch.Tensor]:
        return {"input_ids": self._tokens()}

    def _both(self) -> dict[str, torch.Tensor]:
        tokens, written = self._tokens(), self._tokens()
        tokens[:, -1] = written[:, -1] = self.values["eos_token_id"]  # whose state the classifiers take
        mask = torch.ones_like(tokens)
        return {
            "input_ids": tokens,
            "attention_mask": mask,
            "decoder_input_ids": written,
            "decoder_attention_mask": mask.clone(),
        }

    def _speech(self) -> dict[str, torch.Tensor]:
        return {"input_features": torch.randn(self.batch_size, 80, 60), "decoder_input_ids": self._tokens()}

    def _wave(self) -> dict[str, torch.Tensor]:
        waves = torch.randn(self.batch_size, 1024)
        return {"input_values": waves, "attention_mask": torch.ones(waves.shape, dtype=torch.long)}

    def _image(self) -> dict[str, torch.Tensor]:
        return {"pixel_values": torch.rand(self.batch_size, 3, 30, 30)}

    def _pyramid(self) -> dict[str, torch.Tensor]:
        return {"pixel_values": torch.rand(self.batch_size, 3, 32, 32)}

    _convolution = _pyramid

    def _pair(self) -> dict[str, torch.Tensor]:
        return {**self._image(), **self._decoder()}


def _test_case(name: str) -> type[unittest.TestCase]:
    reads, classes, _ = _ARCHITECTURES[name]
    found = tuple(getattr(transformers, name + each) for each in classes)

    bases = (
        (ModelTesterMixin, GenerationTesterMixin) if any(each.can_generate() for each in found) else (ModelTesterMixin,)
    )

    class Case(*bases, unittest.TestCase):  # type: ignore[misc]
        all_model_classes = found
        is_encoder_decoder = reads in {"both", "speech"}
        has_attentions = reads not in {"recurrent", "convolution"}
        additional_model_inputs = ("pixel_values",) if reads == "pair" else ()
        test_resize_embeddings = reads in {"decoder", "encoder", "recurrent", "both"}
        _is_composite = reads == "pair"

        def setUp(self) -> None:
            torch.manual_seed(0)
            self.model_tester = _Tester(self, name)

    Case.__name__ = Case.__qualname__ = f"{name}ModelTest"
    return pytest.mark.filterwarnings("ignore")(Case)


globals().update(
    {f"{name}ModelTest": _test_case(name) for name in _ARCHITECTURES if hasattr(transformers, f"{name}Config")}
)
