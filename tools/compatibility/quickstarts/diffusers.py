"""Diffusers: a small U-Net denoises with four schedulers, an autoencoder, and a step of training."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)


def unet():
    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )


def training():
    model, scheduler = unet(), DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clean, losses = torch.randn(2, 3, 16, 16), []
    for _ in range(3):
        noise, steps = torch.randn_like(clean), torch.randint(0, 100, (2,))
        loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(clean, noise, steps), steps).sample, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return {"losses": losses}


def sampling():
    model, found = unet().eval(), {}
    for kind in (DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler):
        scheduler = kind(num_train_timesteps=100)
        scheduler.set_timesteps(4)
        sample = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(1)) * scheduler.init_noise_sigma
        for step in scheduler.timesteps:
            with torch.no_grad():
                noise = model(scheduler.scale_model_input(sample, step), step).sample
            sample = scheduler.step(noise, step, sample).prev_sample
        found[kind.__name__] = sample
    return found


def pipeline():
    pipe = DDPMPipeline(unet=unet().eval(), scheduler=DDPMScheduler(num_train_timesteps=100))
    pipe.set_progress_bar_config(disable=True)
    images = pipe(generator=torch.Generator().manual_seed(0), num_inference_steps=3, output_type="np").images
    return {"images": images}


def autoencoder():
    model = AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, sample_size=16, latent_channels=4)
    out = model(torch.randn(1, 3, 16, 16), sample_posterior=True, generator=torch.Generator().manual_seed(2)).sample
    out.square().mean().backward()
    return {"out": out, "gradient": model.encoder.conv_in.weight.grad}


def conditional():
    model = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(16, 32),
        layers_per_block=1,
        cross_attention_dim=16,
        norm_num_groups=8,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    out = model(torch.randn(1, 4, 8, 8), 10, encoder_hidden_states=torch.randn(1, 5, 16)).sample
    out.square().mean().backward()
    return {"out": out, "gradient": model.conv_in.weight.grad}


CASES = {
    "training": training,
    "sampling": sampling,
    "pipeline": pipeline,
    "autoencoder": autoencoder,
    "conditional U-Net": conditional,
}
