"""Segmentation Models: four decoders on small encoders, a step of training with the Dice loss."""

import segmentation_models_pytorch as smp
import torch


def decoder(name, encoder):
    def run():
        torch.manual_seed(0)
        model = smp.create_model(name, encoder_name=encoder, encoder_weights=None, in_channels=3, classes=2)
        # In double precision: statistics of two small pictures make much of the last bits of float32.
        model, images = model.double(), torch.randn(2, 3, 64, 64, dtype=torch.float64)
        target = (torch.rand(2, 64, 64) > 0.5).long()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loss_function = smp.losses.DiceLoss(mode="multiclass")
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            out = model(images)
            loss = loss_function(out, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scores = smp.metrics.get_stats(out.argmax(1), target, mode="multiclass", num_classes=2)
        return {"losses": losses, "iou": smp.metrics.iou_score(*scores, reduction="micro").round(decimals=2)}

    return run


CASES = {
    "Unet, resnet18": decoder("unet", "resnet18"),
    "FPN, mobilenet_v2": decoder("fpn", "mobilenet_v2"),
    "Linknet, resnet18": decoder("linknet", "resnet18"),
    "DeepLabV3+, resnet18": decoder("deeplabv3plus", "resnet18"),
}
