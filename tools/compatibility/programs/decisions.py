"""Policies that balance a pole (REINFORCE, actor and critic, DQN), a graph network, attention over patches, a fit."""

import math
from collections import deque

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F


class Pole:
    """A pole on a cart, by Euler's method."""

    def reset(self):
        self.state = (torch.rand(4, dtype=torch.float64) * 0.1 - 0.05).tolist()
        return torch.tensor(self.state, dtype=torch.float32)

    def step(self, action):
        x, v, angle, spin = self.state
        push = 10.0 if action == 1 else -10.0
        common = (push + 0.05 * spin**2 * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * common) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        move = common - 0.05 * turn * math.cos(angle) / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * move, angle + 0.02 * spin, spin + 0.02 * turn]
        ended = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return torch.tensor(self.state, dtype=torch.float32), 1.0, ended


def discounted(rewards):
    found, total = deque(), 0.0
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        found.appendleft(total)
    found = torch.tensor(found)
    return (found - found.mean()) / (found.std() + 1e-8)


def reinforce():
    policy = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.6), nn.ReLU(), nn.Linear(32, 2))
    optimizer, pole, losses, lengths = torch.optim.Adam(policy.parameters(), lr=1e-2), Pole(), [], []
    for _ in range(20):
        state, logs, rewards = pole.reset(), [], []
        for _ in range(60):
            chances = Categorical(F.softmax(policy(state.unsqueeze(0)), dim=1))
            action = chances.sample()
            logs.append(chances.log_prob(action))
            state, reward, ended = pole.step(action.item())
            rewards.append(reward)
            if ended:
                break
        loss = torch.cat([-log * value for log, value in zip(logs, discounted(rewards), strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        lengths.append(len(rewards))
    return {"losses": losses, "lengths": lengths}


def actor_critic():
    body, actor, critic = nn.Linear(4, 32), nn.Linear(32, 2), nn.Linear(32, 1)
    parts = nn.ModuleList([body, actor, critic])
    optimizer, pole, losses = torch.optim.Adam(parts.parameters(), lr=3e-2), Pole(), []
    for _ in range(15):
        state, taken, rewards = pole.reset(), [], []
        for _ in range(60):
            hidden = F.relu(body(state))
            chances = Categorical(F.softmax(actor(hidden), dim=-1))
            action = chances.sample()
            taken.append((chances.log_prob(action), critic(hidden)))
            state, reward, ended = pole.step(action.item())
            rewards.append(reward)
            if ended:
                break
        loss = 0.0
        for (log, value), wanted in zip(taken, discounted(rewards), strict=True):
            loss = loss - log * (wanted - value.item()) + F.smooth_l1_loss(value, wanted.view(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def deep_q():
    policy, target = (nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2))
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    pole, memory, losses = Pole(), deque(maxlen=200), []
    state = pole.reset()
    while len(losses) < 50:
        action = policy(state).argmax().item() if torch.rand(()) > 0.3 else torch.randint(0, 2, ()).item()
        after, reward, ended = pole.step(action)
        memory.append((state, action, after, reward, not ended))
        state = pole.reset() if ended else after
        if len(memory) < 32:
            continue
        chosen = [memory[number] for number in torch.randperm(len(memory))[:16].tolist()]
        states, actions, nexts, rewards, goes_on = zip(*chosen, strict=True)
        value = policy(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])
        with torch.no_grad():
            best = target(torch.stack(nexts)).max(1).values * torch.tensor(goes_on)
        loss = F.smooth_l1_loss(value, (torch.tensor(rewards) + 0.99 * best)[:, None])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        for ours, theirs in zip(target.parameters(), policy.parameters(), strict=True):
            ours.data.lerp_(theirs.data, 0.05)
        losses.append(loss.item())
    return {"losses": losses}


def graph():
    """A graph network on two groups of nodes, with a sparse matrix of neighbours."""
    groups = torch.arange(40) % 2
    chance = torch.where(groups[:, None] == groups, 0.3, 0.05)
    links = torch.bernoulli(chance).triu(1)
    links = links + links.t() + torch.eye(40)
    degree = links.sum(1).rsqrt()
    neighbours = (degree[:, None] * links * degree).to_sparse()
    first, second = nn.Linear(40, 16), nn.Linear(16, 2)
    parts = nn.ModuleList([first, second])
    optimizer, losses = torch.optim.Adam(parts.parameters(), lr=0.01, weight_decay=5e-4), []
    for _ in range(50):
        hidden = F.dropout(F.relu(torch.sparse.mm(neighbours, first(torch.eye(40)))), 0.5)
        out = F.log_softmax(torch.sparse.mm(neighbours, second(hidden)), dim=1)
        loss = F.nll_loss(out[:10], groups[:10])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def patches():
    """Attention over the patches of pictures."""
    cut, token, place = (
        nn.Conv2d(1, 24, 4, 4),
        nn.Parameter(torch.randn(1, 1, 24)),
        nn.Parameter(torch.randn(1, 10, 24)),
    )
    layer = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, activation="gelu", batch_first=True)
    body, head = nn.TransformerEncoder(layer, 2), nn.Linear(24, 4)
    parameters = [token, place, *cut.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=2e-3)
    scheduler, losses = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=50), []
    for _ in range(50):
        images, labels = torch.randn(16, 1, 12, 12), torch.randint(0, 4, (16,))
        for image, label in zip(images, labels, strict=True):
            image[:, label * 3 : label * 3 + 3] += 1
        x = cut(images).flatten(2).transpose(1, 2)
        x = torch.cat([token.expand(16, -1, -1), x], 1) + place
        loss = F.cross_entropy(head(body(x)[:, 0]), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return {"losses": losses}


def polynomial():
    """A polynomial of degree four is fitted."""
    wanted, offset, model = torch.randn(4, 1) * 5, torch.randn(1) * 5, nn.Linear(4, 1)
    losses = []
    for _ in range(50):
        x = torch.randn(32)
        powers = torch.cat([x.unsqueeze(1) ** each for each in range(1, 5)], 1)
        loss = F.smooth_l1_loss(model(powers), powers.mm(wanted) + offset)
        model.zero_grad()
        loss.backward()
        for each in model.parameters():
            each.data.add_(-0.1 * each.grad)
        losses.append(loss.item())
    return {"losses": losses}


CASES = {
    "REINFORCE": reinforce,
    "actor and critic": actor_critic,
    "deep Q-learning": deep_q,
    "graph network": graph,
    "vision transformer": patches,
    "polynomial": polynomial,
}
