"""Kornia: filters, geometry, colours and augmentations of images, with gradients."""

import kornia
import torch


def main():
    images = torch.rand(2, 3, 24, 24, requires_grad=True)
    blurred = kornia.filters.gaussian_blur2d(images, (5, 5), (1.5, 1.5))
    edges = kornia.filters.sobel(blurred)
    angle = torch.tensor([15.0, -30.0])
    rotated = kornia.geometry.transform.rotate(images, angle)
    corners = torch.tensor([[[2.0, 2.0], [20.0, 3.0], [21.0, 20.0], [1.0, 22.0]]]).repeat(2, 1, 1)
    square = torch.tensor([[[0.0, 0.0], [15.0, 0.0], [15.0, 15.0], [0.0, 15.0]]]).repeat(2, 1, 1)
    homography = kornia.geometry.transform.get_perspective_transform(corners, square)
    warped = kornia.geometry.transform.warp_perspective(images, homography, (16, 16))
    (edges.mean() + rotated.square().mean() + warped.mean()).backward()
    augment = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(p=0.5),
        kornia.augmentation.ColorJitter(0.2, 0.2, 0.2, 0.1, p=1.0),
        kornia.augmentation.RandomAffine(20.0, p=1.0),
        data_keys=["input"],
    )
    with torch.no_grad():
        augmented = augment(images)
        features = kornia.feature.harris_response(kornia.color.rgb_to_grayscale(images))
        lab = kornia.color.rgb_to_lab(images)
        loss = kornia.losses.ssim_loss(images, blurred, 5)
        dilated = kornia.morphology.dilation(images, torch.ones(3, 3))
        quaternion = kornia.geometry.conversions.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]]))
    return {
        "edges": edges,
        "rotated": rotated,
        "warped": warped,
        "gradient": images.grad,
        "augmented": augmented,
        "features": features,
        "lab": lab,
        "ssim": loss,
        "dilated": dilated,
        "rotation": quaternion,
    }
