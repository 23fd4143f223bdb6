"""torchvision: its operators with gradients, transforms, and models for classes, boxes and masks."""

import torch
import torchvision
from torchvision import ops, tv_tensors
from torchvision.transforms import v2


def operators():
    images = torch.rand(2, 8, 16, 16, requires_grad=True)
    boxes = [torch.tensor([[1.0, 2.0, 9.0, 12.0], [0.0, 0.0, 15.0, 15.0]]), torch.tensor([[4.0, 4.0, 4.5, 4.2]])]
    offset = (torch.rand(2, 18, 14, 14) - 0.5).requires_grad_()
    weight = torch.randn(4, 8, 3, 3, requires_grad=True)
    mask = torch.rand(2, 9, 14, 14)
    found = {
        "roi_align": ops.roi_align(images, boxes, 3, sampling_ratio=2, aligned=True),
        "roi_align, adaptive": ops.roi_align(images, boxes, (2, 3), spatial_scale=0.5),
        "roi_pool": ops.roi_pool(images, boxes, 2),
        "ps_roi_align": ops.ps_roi_align(images, boxes, 2, sampling_ratio=2),
        "ps_roi_pool": ops.ps_roi_pool(images, boxes, 2),
        "deform_conv2d": ops.deform_conv2d(images, offset, weight, mask=mask),
    }
    sum(each.square().mean() for each in found.values()).backward()
    corners = torch.rand(50, 2) * 10
    many = torch.cat([corners, corners + 1 + torch.rand(50, 2) * 4], 1)
    return {
        **found,
        "gradients": [images.grad, offset.grad, weight.grad],
        "nms": ops.nms(many, torch.rand(50), 0.4),
        "batched_nms": ops.batched_nms(many, torch.rand(50), torch.randint(0, 3, (50,)), 0.4),
        "iou": ops.generalized_box_iou(many[:5], many[:7]),
        "focal": ops.sigmoid_focal_loss(many, (many > 5).float(), reduction="mean"),
    }


def transforms():
    image = tv_tensors.Image(torch.randint(0, 256, (3, 40, 40), dtype=torch.uint8))
    boxes = tv_tensors.BoundingBoxes([[4, 5, 20, 30]], format="XYXY", canvas_size=(40, 40))
    change = v2.Compose(
        [
            v2.RandomResizedCrop(24, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.ColorJitter(0.2, 0.2, 0.2),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    changed, moved = change(image, boxes)
    turned = v2.functional.rotate(changed, 30.0, interpolation=v2.InterpolationMode.BILINEAR)
    return {
        "image": changed.as_subclass(torch.Tensor),
        "boxes": moved.as_subclass(torch.Tensor).float(),
        "turned": turned,
    }


def classes(name, size=64, **options):
    def run():
        model = torchvision.models.get_model(name, weights=None, num_classes=10, **options).train()
        out = model(torch.rand(2, 3, size, size))
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 2]))
        loss.backward()
        return {"out": out, "loss": loss, "gradient": next(model.parameters()).grad.norm()}

    return run


def transformer():
    model = torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    out = model(torch.rand(2, 3, 32, 32))
    loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 2]))
    loss.backward()
    return {"out": out, "loss": loss, "gradient": model.conv_proj.weight.grad}


def segmentation():
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3
    )
    out = model.eval()(torch.rand(1, 3, 64, 64))["out"]
    out.square().mean().backward()
    return {"out": out, "gradient": model.backbone["0"][0].weight.grad}


def detection():
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, min_size=96, max_size=96
    )
    # In double precision: the scores of a network that has learned nothing differ in the last bits of float32 alone.
    model = model.double()
    images = [torch.rand(3, 96, 96, dtype=torch.float64)]
    boxes = torch.tensor([[10.0, 10.0, 50.0, 60.0]], dtype=torch.float64)
    target = [{"boxes": boxes, "labels": torch.tensor([1])}]
    losses = model.train()(images, target)
    sum(losses.values()).backward()
    with torch.no_grad():
        found = model.eval()(images)[0]
    return {"losses": losses, "boxes": found["boxes"], "scores": found["scores"]}


CASES = {
    "operators": operators,
    "transforms": transforms,
    "resnet18": classes("resnet18"),
    "mobilenet_v3_small": classes("mobilenet_v3_small"),
    "vision transformer": transformer,
    "efficientnet_b0": classes("efficientnet_b0"),
    "segmentation": segmentation,
    "detection": detection,
}
