"""Transformers: small models of many architectures from their configurations, forward and backward, and `generate`."""

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
)

TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "vocab_size": 99,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
SEQ2SEQ = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
T5 = {
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
}
VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_labels": 5,
}


def case(start):
    """A case from a function that makes a model, a function of inputs that gives a result and a loss, and inputs."""

    def run():
        model, forward, inputs = start()
        out, loss = forward(*inputs)
        loss.backward()
        norms = [each.grad.double().norm() for each in model.parameters() if each.grad is not None]
        return {"out": out, "loss": loss, "gradient": torch.stack(norms).norm(), "number of gradients": len(norms)}

    run.start = start  # for `tools.compile_sweep`, which trains
    return run


def build(factory, kind, options):
    torch.manual_seed(0)
    return factory.from_config(AutoConfig.for_model(kind, **options)).eval()


def with_loss(model, *names):
    """A function of the inputs with these names, of a model that computes its loss itself."""

    def forward(*inputs):
        out = model(**dict(zip(names, inputs, strict=True)))
        return out.logits, out.loss

    return forward


def causal(kind, **options):
    @case
    def run():
        model = build(AutoModelForCausalLM, kind, options)
        ids = torch.randint(3, 99, (2, 9))
        return model, with_loss(model, "input_ids", "labels"), (ids, ids)

    return run


def masked(kind, **options):
    @case
    def run():
        model = build(AutoModelForMaskedLM, kind, options)
        ids = torch.randint(3, 99, (2, 16))
        mask = torch.ones_like(ids)
        mask[1, 12:] = 0
        return model, with_loss(model, "input_ids", "attention_mask", "labels"), (ids, mask, ids)

    return run


def translation(kind, **options):
    @case
    def run():
        model = build(AutoModelForSeq2SeqLM, kind, options)
        ids = torch.randint(3, 99, (2, 9))
        return model, with_loss(model, "input_ids", "labels"), (ids, torch.randint(3, 99, (2, 7)))

    return run


def images(kind, size=32, **options):
    @case
    def run():
        model = build(AutoModelForImageClassification, kind, options)
        pictures = torch.rand(2, 3, size, size)
        return model, with_loss(model, "pixel_values", "labels"), (pictures, torch.tensor([1, 2]))

    return run


def audio(kind, **options):
    @case
    def run():
        model = build(AutoModel, kind, options)

        def forward(sound):
            out = model(sound).last_hidden_state
            return out, out.square().mean()

        return model, forward, (torch.rand(1, 1600),)

    return run


@case
def whisper():
    options = {**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20}
    model = build(AutoModel, "whisper", {**options, "pad_token_id": 0, "decoder_start_token_id": 1})

    def forward(sound, ids):
        out = model(sound, decoder_input_ids=ids).last_hidden_state
        return out, out.square().mean()

    return model, forward, (torch.rand(1, 8, 40), torch.randint(3, 99, (1, 5)))


def pairs(kind):
    @case
    def run():
        text = {**TEXT, "projection_dim": 16}
        model = build(AutoModel, kind, {"text_config": text, "vision_config": VISION, "projection_dim": 16})

        def forward(ids, pictures, labels):
            logits = model(input_ids=ids, pixel_values=pictures).logits_per_image
            return logits, torch.nn.functional.cross_entropy(logits, labels)

        return model, forward, (torch.randint(3, 99, (2, 7)), torch.rand(2, 3, 32, 32), torch.tensor([0, 1]))

    return run


def generation(kind, factory=AutoModelForCausalLM, **options):
    """The tokens of greedy search, of sampling and of beam search."""

    def run():
        model = build(factory, kind, options)
        with torch.no_grad():
            for each in model.parameters():
                each.mul_(4)  # small random weights would prefer one token everywhere
        prompt = torch.randint(3, 99, (2, 5))
        found = {}
        for name, settings in {
            "greedy": {"do_sample": False},
            "sampled": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8},
            "beam": {"num_beams": 3, "do_sample": False, "length_penalty": 0.8},
            "penalty": {"do_sample": False, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
        }.items():
            torch.manual_seed(1)
            settings = GenerationConfig(
                max_new_tokens=12, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **settings
            )
            found[name] = model.generate(prompt, generation_config=settings).tolist()
        return found

    return run


ROPE = {"head_dim": 8}
MAMBA = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "pad_token_id": 0}
CASES = {
    "gpt2": causal("gpt2", **GPT),
    "gpt_neo": causal("gpt_neo", **TEXT, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]),
    "gpt_neox": causal("gpt_neox", **TEXT),
    "gptj": causal("gptj", **GPT, rotary_dim=4),
    "codegen": causal("codegen", **GPT, rotary_dim=4),
    "gpt_bigcode": causal("gpt_bigcode", **GPT),
    "openai-gpt": causal("openai-gpt", **GPT),
    "opt": causal("opt", **TEXT, ffn_dim=48, word_embed_proj_dim=32),
    "bloom": causal("bloom", vocab_size=99, hidden_size=32, n_layer=2, n_head=4),
    "mpt": causal("mpt", d_model=32, n_heads=4, n_layers=2, vocab_size=99, max_seq_len=64),
    "falcon": causal("falcon", **TEXT),
    "llama": causal("llama", **TEXT),
    "mistral": causal("mistral", **TEXT),
    "mixtral": causal("mixtral", **TEXT, **EXPERTS),
    "qwen2": causal("qwen2", **TEXT),
    "qwen2_moe": causal("qwen2_moe", **TEXT, **EXPERTS, shared_expert_intermediate_size=16),
    "qwen3": causal("qwen3", **TEXT, **ROPE),
    "gemma": causal("gemma", **TEXT, **ROPE),
    "gemma2": causal("gemma2", **TEXT, **ROPE),
    "gemma3_text": causal("gemma3_text", **TEXT, **ROPE),
    "phi": causal("phi", **TEXT),
    "phi3": causal("phi3", **TEXT),
    "stablelm": causal("stablelm", **TEXT),
    "starcoder2": causal("starcoder2", **TEXT),
    "cohere": causal("cohere", **TEXT),
    "olmo": causal("olmo", **TEXT),
    "olmo2": causal("olmo2", **TEXT),
    "granite": causal("granite", **TEXT),
    "persimmon": causal("persimmon", **TEXT),
    "nemotron": causal("nemotron", **TEXT),
    "biogpt": causal("biogpt", **TEXT),
    "xglm": causal("xglm", vocab_size=99, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, pad_token_id=0),
    "mamba": causal("mamba", **MAMBA),
    "bert": masked("bert", **TEXT),
    "roberta": masked("roberta", **TEXT),
    "distilbert": masked("distilbert", vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "albert": masked("albert", **TEXT, embedding_size=16),
    "electra": masked("electra", **TEXT, embedding_size=16),
    "deberta": masked("deberta", **TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "deberta-v2": masked("deberta-v2", **TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "xlm-roberta": masked("xlm-roberta", **TEXT),
    "mpnet": masked("mpnet", **TEXT),
    "mobilebert": masked("mobilebert", **TEXT, embedding_size=16, intra_bottleneck_size=32),
    "camembert": masked("camembert", **TEXT),
    "convbert": masked("convbert", **TEXT, embedding_size=16),
    "fnet": masked("fnet", **TEXT),
    "roformer": masked("roformer", **TEXT, embedding_size=16),
    "squeezebert": masked("squeezebert", **TEXT, embedding_size=32),
    "modernbert": masked("modernbert", **TEXT),
    "longformer": masked("longformer", **TEXT, attention_window=4),
    "t5": translation("t5", **T5),
    "mt5": translation("mt5", **T5),
    "bart": translation("bart", **SEQ2SEQ),
    "mbart": translation("mbart", **SEQ2SEQ),
    "pegasus": translation("pegasus", **SEQ2SEQ),
    "marian": translation("marian", **SEQ2SEQ, pad_token_id=0, decoder_start_token_id=1),
    "m2m_100": translation("m2m_100", **SEQ2SEQ),
    "led": translation("led", **SEQ2SEQ, attention_window=4, max_encoder_position_embeddings=64),
    "vit": images("vit", **VISION),
    "beit": images("beit", **VISION),
    "dinov2": images("dinov2", **VISION),
    "swin": images(
        "swin", num_labels=5, image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4
    ),
    "convnext": images("convnext", num_labels=5, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1]),
    "resnet": images("resnet", num_labels=5, size=64, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    "mobilevit": images(
        "mobilevit", num_labels=5, size=64, image_size=64, hidden_sizes=[16, 16, 16], neck_hidden_sizes=[8] * 7
    ),
    "segformer": images("segformer", num_labels=5, size=64, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1]),
    "poolformer": images("poolformer", num_labels=5, size=64, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1]),
    "wav2vec2": audio(
        "wav2vec2", **TEXT, conv_dim=[16] * 7, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2
    ),
    "hubert": audio("hubert", **TEXT, conv_dim=[16] * 7, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2),
    "whisper": whisper,
    "clip": pairs("clip"),
    "siglip": pairs("siglip"),
    "generate: gpt2": generation("gpt2", **GPT),
    "generate: llama": generation("llama", **TEXT),
    "generate: t5": generation("t5", AutoModelForSeq2SeqLM, **T5),
}
