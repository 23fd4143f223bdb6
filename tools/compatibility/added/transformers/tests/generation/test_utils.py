"""Tests of `generate` for every model that generates; the source distribution comes without transformers' own."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MaxLengthCriteria,
    StoppingCriteriaList,
    set_seed,
)
from transformers.generation.streamers import BaseStreamer

_NEW = 6
_PLAIN = {"max_new_tokens": _NEW, "min_new_tokens": _NEW, "do_sample": False}


class _Keeps(BaseStreamer):
    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.ended = False

    def put(self, value: torch.Tensor) -> None:
        self.tokens += value.reshape(-1).tolist()

    def end(self) -> None:
        self.ended = True


class _Forbids(LogitsProcessor):  # type: ignore[misc]
    def __init__(self, token: int) -> None:
        self.token = token

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        scores[:, self.token] = -torch.inf
        return scores


class GenerationTesterMixin:
    """What must hold of the tokens that a model writes, however it writes them."""

    model_tester: Any
    all_generative_model_classes: tuple[Any, ...]

    def _models(self, **values: Any) -> Any:
        for model_class in self.all_generative_model_classes:
            set_seed(3)
            config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
            for name, value in values.items():
                setattr(config, name, value)
            model = model_class(config).eval()
            model.generation_config.eos_token_id = None
            model.generation_config.forced_eos_token_id = None
            if "token_type_ids" in inputs:
                del inputs["token_type_ids"]
            for name in ("decoder_input_ids", "decoder_attention_mask"):
                inputs.pop(name, None)
            if model.generation_config.pad_token_id is None:
                model.generation_config.pad_token_id = 0
            yield model, inputs
        if not self.all_generative_model_classes:
            pytest.skip("it does not generate")

    def _equal(self, mine: torch.Tensor, other: torch.Tensor) -> None:
        assert mine.tolist() == other.tolist()

    def _with(self, **asked: Any) -> None:
        for model, inputs in self._models():
            written = model.generate(**inputs, **{**_PLAIN, **asked})
            assert written.dtype == torch.int64
            assert 0 <= int(written.min()) <= int(written.max()) < model.config.get_text_config(decoder=True).vocab_size

    def test_generate_greedily_is_the_largest_logit_again_and_again(self) -> None:
        for model, inputs in self._models():
            written = model.generate(**inputs, **_PLAIN, use_cache=False)
            if model.config.is_encoder_decoder:
                start = model.generation_config.decoder_start_token_id
                tokens = torch.full((len(written), 1), start)
            else:
                tokens = inputs["input_ids"]
            with torch.no_grad():
                for _ in range(_NEW):
                    if model.config.is_encoder_decoder:
                        logits = model(**inputs, decoder_input_ids=tokens).logits
                    else:
                        logits = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
                    tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
            self._equal(written, tokens)

    def test_generate_with_a_cache_writes_the_same(self) -> None:
        for model, inputs in self._models():
            with_cache = model.generate(**inputs, **_PLAIN, use_cache=True)
            self._equal(with_cache, model.generate(**inputs, **_PLAIN, use_cache=False))

    def test_generate_with_a_static_cache_writes_the_same(self) -> None:
        for model, inputs in self._models():
            if not model._supports_default_dynamic_cache():
                pytest.skip("other caches")
            other = model.generate(**inputs, **_PLAIN, cache_implementation="static")
            self._equal(model.generate(**inputs, **_PLAIN), other)

    def test_generate_compiled(self) -> None:
        for model, inputs in self._models():
            if not model._supports_default_dynamic_cache():
                pytest.skip("other caches")
            plain = model.generate(**inputs, **_PLAIN, cache_implementation="static")
            model.forward = torch.compile(model.forward, backend="eager")
            self._equal(plain, model.generate(**inputs, **_PLAIN, cache_implementation="static"))

    def test_generate_with_an_offloaded_or_given_cache(self) -> None:
        from transformers import DynamicCache

        for model, inputs in self._models():
            if model.config.is_encoder_decoder or not model._supports_default_dynamic_cache():
                pytest.skip("other caches")
            cache = DynamicCache(config=model.config)
            written = model.generate(**inputs, **_PLAIN, past_key_values=cache, return_dict_in_generate=True)
            self._equal(written.sequences, model.generate(**inputs, **_PLAIN))
            assert written.past_key_values is cache
            assert cache.get_seq_length() == written.sequences.shape[1] - 1

    def test_generate_goes_on_from_a_cache(self) -> None:
        for model, inputs in self._models():
            if model.config.is_encoder_decoder or "input_ids" not in inputs:
                pytest.skip("a decoder's test")
            if not model._supports_default_dynamic_cache():
                pytest.skip("other caches")
            whole = model.generate(inputs["input_ids"], **_PLAIN)
            half = {**_PLAIN, "max_new_tokens": 3, "min_new_tokens": 3, "return_dict_in_generate": True}
            first = model.generate(inputs["input_ids"], **half)
            mask = torch.ones_like(first.sequences)
            second = model.generate(first.sequences, attention_mask=mask, past_key_values=first.past_key_values, **half)
            self._equal(whole, second.sequences)

    def test_generate_from_embeddings(self) -> None:
        for model, inputs in self._models():
            if model.config.is_encoder_decoder or "input_ids" not in inputs:
                pytest.skip("a decoder's test")
            embedded = model.get_input_embeddings()(inputs["input_ids"])
            other = model.generate(inputs_embeds=embedded, **_PLAIN)
            self._equal(model.generate(inputs["input_ids"], **_PLAIN)[:, -_NEW:], other)

    def test_generate_with_padding_on_the_left(self) -> None:
        for model, inputs in self._models():
            if model.config.is_encoder_decoder or "attention_mask" not in inputs:
                pytest.skip("a decoder's test")
            tokens, mask = inputs["input_ids"], inputs["attention_mask"]
            padded = torch.cat([torch.full((len(tokens), 5), model.generation_config.pad_token_id), tokens], 1)
            other = torch.cat([torch.zeros(len(tokens), 5, dtype=mask.dtype), mask], 1)
            with_padding = model.generate(padded, attention_mask=other, **_PLAIN)
            self._equal(model.generate(tokens, attention_mask=mask, **_PLAIN)[:, -_NEW:], with_padding[:, -_NEW:])

    def test_generate_returns_scores_and_states(self) -> None:
        for model, inputs in self._models(_attn_implementation="eager"):
            asked = dict.fromkeys(("output_scores", "output_logits", "output_hidden_states"), True)
            found = model.generate(**inputs, **_PLAIN, **asked, return_dict_in_generate=True)
            assert len(found.scores) == len(found.logits) == _NEW
            size = model.config.get_text_config(decoder=True).vocab_size
            assert found.logits[0].shape == (len(found.sequences), size)
            self._equal(torch.stack(found.scores, 1).argmax(-1), found.sequences[:, -_NEW:])
            states = found.decoder_hidden_states if model.config.is_encoder_decoder else found.hidden_states
            assert len(states) == _NEW
            once = model.compute_transition_scores(found.sequences, found.scores, normalize_logits=True)
            expected = torch.stack(found.scores, 1).log_softmax(-1).max(-1).values
            torch.testing.assert_close(once, expected)

    def test_generate_returns_attentions(self) -> None:
        for model, inputs in self._models(_attn_implementation="eager"):
            if not getattr(self, "has_attentions", True):
                pytest.skip("no attention")
            found = model.generate(**inputs, **_PLAIN, output_attentions=True, return_dict_in_generate=True)
            kept = found.decoder_attentions if model.config.is_encoder_decoder else found.attentions
            assert len(kept) == _NEW
            totals = torch.stack([each[0].float().sum(-1) for each in kept[1:]])
            torch.testing.assert_close(totals, torch.ones_like(totals))

    def test_generate_with_beams(self) -> None:
        for model, inputs in self._models():
            found = model.generate(
                **inputs,
                **_PLAIN,
                num_beams=3,
                num_return_sequences=2,
                return_dict_in_generate=True,
                output_scores=True,
                length_penalty=0.0,
            )
            assert len(found.sequences) == 2 * self.model_tester.batch_size
            scores = model.compute_transition_scores(found.sequences, found.scores, found.beam_indices)
            torch.testing.assert_close(scores.sum(1), found.sequences_scores, atol=1e-4, rtol=1e-4)
            assert bool((found.sequences_scores[0::2] >= found.sequences_scores[1::2]).all())

    def test_generate_with_beams_and_a_cache_writes_the_same(self) -> None:
        for model, inputs in self._models():
            with_cache = model.generate(**inputs, **_PLAIN, num_beams=2)
            self._equal(with_cache, model.generate(**inputs, **_PLAIN, num_beams=2, use_cache=False))

    def test_generate_with_one_beam_is_greedy(self) -> None:
        for model, inputs in self._models():
            self._equal(model.generate(**inputs, **_PLAIN), model.generate(**inputs, **_PLAIN, num_beams=1, top_k=1))

    def test_generate_with_drawn_beams(self) -> None:
        self._with(num_beams=2, do_sample=True, early_stopping=True)

    def test_generate_draws_the_same_after_the_same_seed(self) -> None:
        for model, inputs in self._models():
            asked = {**_PLAIN, "do_sample": True, "num_return_sequences": 2, "top_k": 0}
            torch.manual_seed(7)
            first = model.generate(**inputs, **asked)
            torch.manual_seed(7)
            self._equal(first, model.generate(**inputs, **asked))
            assert first.tolist() != model.generate(**inputs, **asked).tolist()

    def test_generate_draws_from_the_likely_ones(self) -> None:
        for name, value in {"top_k": 1, "top_p": 1e-6, "min_p": 1.0, "temperature": 1e-6}.items():
            for model, inputs in self._models():
                drawn = model.generate(**inputs, **{**_PLAIN, "do_sample": True}, **{name: value})
                self._equal(drawn, model.generate(**inputs, **_PLAIN))

    def test_generate_typical_epsilon_and_eta(self) -> None:
        self._with(do_sample=True, typical_p=0.5)
        self._with(do_sample=True, epsilon_cutoff=0.005)
        self._with(do_sample=True, eta_cutoff=0.005)

    def test_generate_repeats_no_pair(self) -> None:
        for model, inputs in self._models():
            written = model.generate(**inputs, **_PLAIN, no_repeat_ngram_size=1)[:, -_NEW:]
            assert all(len(set(row)) == _NEW for row in written.tolist())

    def test_generate_with_penalties(self) -> None:
        self._with(repetition_penalty=1.5)
        self._with(exponential_decay_length_penalty=(2, 1.5), eos_token_id=5)
        self._with(sequence_bias=[[[5], 3.0]], renormalize_logits=True, remove_invalid_values=True)
        self._with(suppress_tokens=[3, 4], begin_suppress_tokens=[5])

    def test_generate_without_some_words(self) -> None:
        for model, inputs in self._models():
            first = model.generate(**inputs, **_PLAIN)[0, -_NEW].item()
            other = model.generate(**inputs, **_PLAIN, bad_words_ids=[[first]])
            assert first not in other[0, -_NEW:].tolist()
            own = model.generate(**inputs, **_PLAIN, logits_processor=LogitsProcessorList([_Forbids(first)]))
            assert first not in own[0, -_NEW:].tolist()
            self._equal(other[:1], own[:1])

    def test_generate_stops(self) -> None:
        for model, inputs in self._models():
            asked = {**_PLAIN, "min_new_tokens": None}
            written = model.generate(**inputs, **asked)
            length = written.shape[1] - 2
            stops = StoppingCriteriaList([MaxLengthCriteria(length)])
            self._equal(model.generate(**inputs, **asked, stopping_criteria=stops), written[:, :length])
            last = written[0, length - 1].item()
            ended = model.generate(**inputs, **asked, eos_token_id=last, pad_token_id=0)
            assert last in ended[0].tolist()
            model.generate(**inputs, **asked, max_time=1e9, forced_eos_token_id=3)

    def test_generate_looks_up_its_prompt(self) -> None:
        for model, inputs in self._models():
            if model._is_stateful or "input_ids" not in inputs:
                pytest.skip("it cannot go back")
            one = {name: value[:1] for name, value in inputs.items()}
            looked = model.generate(**one, **_PLAIN, prompt_lookup_num_tokens=2)
            self._equal(model.generate(**one, **_PLAIN), looked)

    def test_generate_with_an_assistant(self) -> None:
        for model, inputs in self._models():
            if model._is_stateful or "input_ids" not in inputs:
                pytest.skip("it cannot go back")
            one = {name: value[:1] for name, value in inputs.items()}
            assisted = model.generate(**one, **_PLAIN, assistant_model=model)
            self._equal(model.generate(**one, **_PLAIN), assisted)

    def test_generate_streams(self) -> None:
        for model, inputs in self._models():
            one, keeps = {name: value[:1] for name, value in inputs.items()}, _Keeps()
            written = model.generate(**one, **_PLAIN, streamer=keeps)
            assert keeps.ended
            assert keeps.tokens == written[0].tolist()

    def test_generate_after_it_is_loaded(self) -> None:
        for model, inputs in self._models():
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                other = type(model).from_pretrained(folder)
                assert GenerationConfig.from_pretrained(folder).eos_token_id is None
            self._equal(model.generate(**inputs, **_PLAIN), other.generate(**inputs, **_PLAIN))

    def test_generate_in_half_precision(self) -> None:
        for dtype in (torch.bfloat16, torch.float16):
            for model, inputs in self._models():
                cast = {name: each.to(dtype) if each.is_floating_point() else each for name, each in inputs.items()}
                written = model.to(dtype).generate(**cast, **{**_PLAIN, "do_sample": True})
                assert written.shape[0] == self.model_tester.batch_size

    def test_generate_while_it_is_trained(self) -> None:
        for model, inputs in self._models():
            plain = model.generate(**inputs, **_PLAIN)
            model.train()
            assert model.generate(**inputs, **_PLAIN).shape == plain.shape
            assert not torch.is_inference(plain)
            with torch.inference_mode():
                self._equal(model.eval().generate(**inputs, **_PLAIN), plain)
