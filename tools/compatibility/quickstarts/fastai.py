"""fastai: a Learner on tensors and one on a table, trained with the one-cycle policy."""

import numpy as np
import pandas as pd
import torch
from fastai.basics import DataLoaders, Learner, accuracy, set_seed
from fastai.data.load import DataLoader
from fastai.losses import CrossEntropyLossFlat
from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner


def tensors():
    set_seed(0)
    x = torch.randn(64, 10)
    y = (x[:, 0] > 0).long()
    train = DataLoader(list(zip(x[:48], y[:48], strict=True)), bs=16, shuffle=True, num_workers=0)
    valid = DataLoader(list(zip(x[48:], y[48:], strict=True)), bs=16, num_workers=0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    learner = Learner(DataLoaders(train, valid, device="cpu"), model, CrossEntropyLossFlat(), metrics=accuracy)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(3, 1e-2)
    return {"losses": learner.recorder.losses, "values": [list(each) for each in learner.recorder.values]}


def table():
    set_seed(0)
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draws.normal(size=80), "job": draws.choice(["a", "b", "c"], 80)})
    frame["rich"] = np.where(frame["age"] + (frame["job"] == "a") > 0.3, "yes", "no")
    loaders = TabularDataLoaders.from_df(
        frame,
        procs=[Categorify, FillMissing, Normalize],
        cat_names=["job"],
        cont_names=["age"],
        y_names="rich",
        valid_idx=list(range(60, 80)),
        bs=20,
        device="cpu",
        num_workers=0,
    )
    learner = tabular_learner(loaders, layers=[16, 8], metrics=accuracy)
    with learner.no_bar(), learner.no_logging():
        learner.fit(2, 1e-2)
        predictions, _ = learner.get_preds()
    return {"losses": learner.recorder.losses, "predictions": predictions}


CASES = {"tensors": tensors, "table": table}
