"""Ultralytics: YOLO networks from their description: forward in training and inference, loss and gradient."""

import torch
from ultralytics import YOLO
from ultralytics.cfg import get_cfg


def network(description):
    def run():
        torch.manual_seed(0)
        model = YOLO(description).model
        model.args = get_cfg()
        images = torch.rand(2, 3, 64, 64)
        batch = {
            "img": images,
            "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
            "cls": torch.tensor([[0.0], [5.0], [2.0]]),
            "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.4], [0.3, 0.3, 0.2, 0.2], [0.6, 0.4, 0.5, 0.3]]),
        }
        model.train()
        loss, parts = model.loss(batch)
        loss.sum().backward()
        gradient = next(model.parameters()).grad
        model.eval()
        with torch.no_grad():
            out = model(images)
        return {"loss": loss, "parts": parts, "gradient": gradient, "boxes": out[0]}

    return run


CASES = {
    "YOLOv8n": network("yolov8n.yaml"),
    "YOLO11n": network("yolo11n.yaml"),
    "YOLOv5n": network("yolov5n.yaml"),
}
