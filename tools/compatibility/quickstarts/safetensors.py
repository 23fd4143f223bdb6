"""safetensors: write tensors, read them back whole, lazily and in slices, and load a model's state."""

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model


def main():
    tensors = {
        "weight": torch.randn(4, 6),
        "half": torch.randn(5).half(),
        "brain": torch.randn(5).bfloat16(),
        "index": torch.arange(6).reshape(2, 3),
        "mask": torch.tensor([True, False]),
    }
    first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensors.safetensors"
        save_file(tensors, path, metadata={"made": "here"})
        back = load_file(path)
        with safe_open(path, framework="pt", device="cpu") as file:
            names, made = sorted(file.keys()), file.metadata()["made"]
            rows = file.get_slice("weight")[1:3, ::2]
            one = file.get_tensor("brain")
        save_model(first, str(Path(folder) / "model.safetensors"))
        load_model(second, str(Path(folder) / "model.safetensors"))
        digest = sum(path.read_bytes())
    return {
        "back": back,
        "names": names,
        "made": made,
        "rows": rows,
        "one": one,
        "dtypes": [str(each.dtype) for each in back.values()],
        "from bytes": load(save(tensors)),
        "model": second(torch.ones(1, 3)),
        "sum of the file's bytes": digest,
    }
