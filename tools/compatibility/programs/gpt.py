"""A character-level GPT in the style of nanoGPT: AdamW with two groups, warm-up and cosine decay, clipping; samples."""

import math

import torch
from torch import nn
from torch.nn import functional as F

TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. " * 20
LETTERS = sorted(set(TEXT))
BLOCK, BATCH, WIDTH, HEADS, LAYERS, STEPS = 32, 8, 32, 4, 2, 50


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)
        self.tokens.weight = self.head.weight
        self.apply(self.initialize)

    @staticmethod
    def initialize(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, ids, targets=None):
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, ids, count):
        for _ in range(count):
            logits, _ = self(ids[:, -BLOCK:])
            logits = logits[:, -1] / 0.8
            kept, _ = torch.topk(logits, 10)
            logits[logits < kept[:, [-1]]] = -float("inf")
            ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return ids


def rate(step):
    if step < 5:
        return 1e-2 * (step + 1) / 5
    return 1e-3 + 0.5 * (1.0 + math.cos(math.pi * (step - 5) / (STEPS - 5))) * 9e-3


def main():
    torch.manual_seed(1337)
    data = torch.tensor([LETTERS.index(each) for each in TEXT], dtype=torch.long)
    model = GPT()
    decayed = [each for each in model.parameters() if each.dim() >= 2]
    others = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    losses = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        starts = torch.randint(len(data) - BLOCK, (BATCH,))
        x = torch.stack([data[start : start + BLOCK] for start in starts])
        y = torch.stack([data[start + 1 : start + 1 + BLOCK] for start in starts])
        _, loss = model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    model.eval()
    written = model.generate(torch.zeros(1, 1, dtype=torch.long), 60)[0].tolist()
    return {"losses": losses, "text": "".join(LETTERS[each] for each in written)}
