"""Proximal policy optimisation on a small game, balancing a pole: `python examples/ppo.py`."""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

import flambeau as torch
from flambeau import nn
from flambeau.distributions import Categorical


class Pole:
    """A cart with a pole on it; push left or right so that the pole stays up."""

    def reset(self) -> list[float]:
        """A new game."""
        self.state = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.time = 0
        return self.state

    def step(self, push_right: bool) -> tuple[list[float], bool]:
        """The state after a push, and whether the game is over."""
        place, speed, angle, turning = self.state
        force = 10.0 if push_right else -10.0
        inertia = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        bend = (9.8 * math.sin(angle) - math.cos(angle) * inertia) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        push = inertia - 0.05 * bend * math.cos(angle) / 1.1
        self.state = [place + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turning, turning + 0.02 * bend]
        self.time += 1
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21 or self.time >= 200


def main() -> None:
    """Play, learn from what was played, and play again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="a picture of how long the pole stays up")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=5e-3)
    game, means = Pole(), []
    for turn in range(arguments.rounds):
        states, actions, returns, lengths = [], [], [], []
        while len(states) < 500:
            state, over, rewards = game.reset(), False, 0
            while not over:
                with torch.no_grad():
                    action = Categorical(logits=actor(torch.tensor(state))).sample().item()
                states.append(state)
                actions.append(action)
                state, over = game.step(bool(action))
                rewards += 1
            lengths.append(rewards)
            # What is still to come, with later rewards counting less.
            returns += [(1 - 0.98 ** (rewards - time)) / 0.02 for time in range(rewards)]
        played, chosen, gained = torch.tensor(states), torch.tensor(actions), torch.tensor(returns)
        with torch.no_grad():
            before = Categorical(logits=actor(played)).log_prob(chosen)
            advantage = gained - critic(played)[:, 0]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(10):
            policy = Categorical(logits=actor(played))
            ratio = (policy.log_prob(chosen) - before).exp()
            clipped = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            value_loss = ((critic(played)[:, 0] - gained) ** 2).mean()
            loss = -clipped.mean() + 0.01 * value_loss - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        means.append(sum(lengths) / len(lengths))
        print(f"round {turn:2d}  games {len(lengths):3d}  mean length {means[-1]:6.1f}", flush=True)
    if arguments.out:
        save(means, arguments.out)


def save(means: list[float], path: Path) -> None:
    """The mean length of the games of each round."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(means, marker="o", color="#d9480f")
    axes.axhline(200, linestyle="--", color="#9aa5b1", label="the longest game")
    axes.set(xlabel="round", ylabel="steps that the pole stays up")
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
