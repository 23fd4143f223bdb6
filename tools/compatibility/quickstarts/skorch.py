"""skorch: a network as an estimator of scikit-learn, in a pipeline and a grid search."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier


class Network(torch.nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.hidden = torch.nn.Linear(20, width)
        self.out = torch.nn.Linear(width, 2)

    def forward(self, x):
        return torch.softmax(self.out(torch.relu(self.hidden(x))), dim=-1)


def main():
    x, y = make_classification(200, 20, n_informative=10, random_state=0)
    x, y = x.astype(np.float32), y.astype(np.int64)
    net = NeuralNetClassifier(Network, max_epochs=4, lr=0.1, iterator_train__shuffle=True, verbose=0)
    pipeline = Pipeline([("scale", StandardScaler()), ("net", net)])
    pipeline.fit(x, y)
    history = [(each["train_loss"], each["valid_loss"], each["valid_acc"]) for each in net.history]
    net.set_params(train_split=False)
    search = GridSearchCV(net, {"lr": [0.05, 0.1], "module__width": [5, 10]}, cv=2, scoring="accuracy")
    search.fit(x[:60], y[:60])
    return {
        "history": history,
        "probabilities": pipeline.predict_proba(x[:5]),
        "best": str(search.best_params_),
        "scores": search.cv_results_["mean_test_score"],
    }
