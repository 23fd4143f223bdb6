"""Lightning: a module trained and validated by the Trainer, with a checkpoint and early stopping."""

import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint


class Classifier(lightning.LightningModule):
    def __init__(self, width=16, rate=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))
        self.losses = []

    def training_step(self, batch, number):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.log("train", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, number):
        x, y = batch
        self.log("valid", torch.nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)]


def main():
    lightning.seed_everything(0, verbose=False)
    data = torch.utils.data.TensorDataset(torch.randn(48, 8), torch.randint(0, 3, (48,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    valid = torch.utils.data.DataLoader(data, batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(dirpath=folder, monitor="valid")
        trainer = lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            logger=False,
            callbacks=[keep, EarlyStopping("valid", patience=2)],
            enable_progress_bar=False,
            enable_model_summary=True,
            default_root_dir=folder,
            gradient_clip_val=1.0,
        )
        model = Classifier()
        trainer.fit(model, loader, valid)
        best = Classifier.load_from_checkpoint(keep.best_model_path)
        scores = trainer.validate(best, valid, verbose=False)
    return {"losses": model.losses, "valid": scores[0]["valid"], "weight": best.net[0].weight}
