"""Tests of `torch.export` for every model; the source distribution comes without transformers' own."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from transformers import set_seed

_ASKED = ("logits", "last_hidden_state", "start_logits", "prediction_logits", "image_embeds", "reconstruction")


class _First(torch.nn.Module):
    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))[0]  # type: ignore[no-any-return]


class ExportTesterMixin:
    """An exported program computes what its model does."""

    model_tester: Any
    all_model_classes: tuple[Any, ...]
    test_torch_exportable = True

    def _programs(self, **asked: Any) -> Any:
        for model_class in self.all_model_classes[:2]:
            set_seed(5)
            config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
            for name in ("use_cache", "return_dict"):
                if hasattr(config, name):
                    setattr(config, name, name == "return_dict")
            inputs = self._prepare_for_class(inputs, model_class)  # type: ignore[attr-defined]
            model = model_class(config).eval()
            with torch.no_grad():
                yield model, inputs, torch.export.export(model, (), inputs, strict=False, **asked)

    def _agrees(self, found: Any, expected: Any) -> None:
        names = [name for name in _ASKED if getattr(expected, name, None) is not None]
        assert names
        for name in names:
            torch.testing.assert_close(getattr(found, name), getattr(expected, name), atol=1e-5, rtol=1e-4)

    def test_export(self) -> None:
        for model, inputs, program in self._programs():
            with torch.no_grad():
                self._agrees(program.module()(**inputs), model(**inputs))

    def test_export_decomposes(self) -> None:
        for model, inputs, program in self._programs():
            with torch.no_grad():
                self._agrees(program.run_decompositions({}).module()(**inputs), model(**inputs))

    def test_export_is_saved_and_loaded(self) -> None:
        for model, inputs, program in self._programs():
            stream = io.BytesIO()
            torch.export.save(program, stream)
            stream.seek(0)
            with torch.no_grad():
                self._agrees(torch.export.load(stream).module()(**inputs), model(**inputs))

    def test_export_with_any_batch(self) -> None:
        for model_class in self.all_model_classes[:2]:
            set_seed(5)
            config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
            if hasattr(config, "use_cache"):
                config.use_cache = False
            inputs = self._prepare_for_class(inputs, model_class)  # type: ignore[attr-defined]
            model = model_class(config).eval()
            shapes = {name: {0: torch.export.Dim.DYNAMIC} for name in inputs}
            with torch.no_grad():
                program = torch.export.export(model, (), inputs, dynamic_shapes=shapes, strict=False)
                larger = {name: torch.cat([value, value.flip(0)]) for name, value in inputs.items()}
                self._agrees(program.module()(**larger), model(**larger))

    def test_scripted_by_tracing(self) -> None:
        for model_class in self.all_model_classes[:2]:
            set_seed(5)
            config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
            if hasattr(config, "use_cache"):
                config.use_cache = False
            inputs = self._prepare_for_class(inputs, model_class)  # type: ignore[attr-defined]
            model = _First(model_class(config).eval(), tuple(inputs))
            with torch.no_grad():
                traced = torch.jit.trace(model, tuple(inputs.values()), check_trace=False)
                found, expected = traced(*inputs.values()), model(*inputs.values())
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)

    def test_compiled(self) -> None:
        if not self.all_model_classes:
            pytest.skip("no classes")
        for model_class in self.all_model_classes[:2]:
            set_seed(5)
            config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
            inputs = self._prepare_for_class(inputs, model_class)  # type: ignore[attr-defined]
            model = model_class(config).eval()
            with torch.no_grad():
                expected = model(**inputs)
                self._agrees(torch.compile(model, backend="eager")(**inputs), expected)
