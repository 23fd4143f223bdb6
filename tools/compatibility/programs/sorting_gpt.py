"""A transformer that learns to sort digits, in the style of minGPT's demonstration."""

import torch
from torch import nn
from torch.nn import functional as F


class Sorts(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, number):
        digits = torch.randint(3, size=(6,), dtype=torch.long)
        both = torch.cat((digits, torch.sort(digits)[0]), dim=0)
        x, y = both[:-1].clone(), both[1:].clone()
        y[:5] = -1
        return x, y


def main():
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
    body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    embedding, place, head = nn.Embedding(3, 32), nn.Parameter(torch.zeros(1, 11, 32)), nn.Linear(32, 3)
    parameters = [*body.parameters(), *embedding.parameters(), place, *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=5e-3)
    mask = nn.Transformer.generate_square_subsequent_mask(11)
    sampler = torch.utils.data.RandomSampler(Sorts(), replacement=True, num_samples=50 * 16)
    losses = []
    for x, y in torch.utils.data.DataLoader(Sorts(), sampler=sampler, batch_size=16):
        logits = head(body(embedding(x) + place, mask=mask, is_causal=True))
        loss = F.cross_entropy(logits.view(-1, 3), y.view(-1), ignore_index=-1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}
