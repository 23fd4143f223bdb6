"""accelerate: a training loop with gradient accumulation and clipping, and a model built without memory."""

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed


def main():
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    losses, norms = [], []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(accelerator.clip_grad_norm_(model.parameters(), 1.0))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss).item())
    with init_empty_weights():
        empty = torch.nn.Linear(10000, 10000)
    state = accelerator.get_state_dict(model)
    return {
        "losses": losses,
        "norms": norms,
        "rate": scheduler.get_last_lr(),
        "weight": state["0.weight"],
        "empty": str(empty.weight.device),
    }
