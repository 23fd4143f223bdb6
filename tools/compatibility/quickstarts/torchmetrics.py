"""torchmetrics: metrics of a classifier, a regression, a retrieval and images, gathered over batches."""

import torch
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.functional import pearson_corrcoef, r2_score
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanSquaredError, SpearmanCorrCoef


def main():
    metrics = MetricCollection(
        {
            "accuracy": MulticlassAccuracy(4),
            "f1": MulticlassF1Score(4, average="macro"),
            "auroc": MulticlassAUROC(4),
            "confusion": MulticlassConfusionMatrix(4),
        }
    )
    mean, error, order = MeanMetric(), MeanSquaredError(), SpearmanCorrCoef()
    for _ in range(3):
        logits, target = torch.randn(20, 4), torch.randint(0, 4, (20,))
        metrics.update(logits.softmax(-1), target)
        mean.update(logits.mean())
        x = torch.randn(20)
        y = x + 0.3 * torch.randn(20)
        error.update(x, y)
        order.update(x, y)
    images = torch.rand(2, 3, 24, 24)
    noisy = (images + 0.1 * torch.randn_like(images)).clamp(0, 1)
    return {
        **metrics.compute(),
        "mean": mean.compute(),
        "mse": error.compute(),
        "spearman": order.compute(),
        "r2": r2_score(x, y),
        "pearson": pearson_corrcoef(x, y),
        "psnr": PeakSignalNoiseRatio(data_range=1.0)(noisy, images),
        "ssim": StructuralSimilarityIndexMeasure(data_range=1.0)(noisy, images),
    }
