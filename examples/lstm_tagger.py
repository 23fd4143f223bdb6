"""An LSTM that tags the words of a sentence with their part of speech: `python examples/lstm_tagger.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SENTENCES = [
    ("the dog ate the apple", "D N V D N"),
    ("everybody read that book", "P V D N"),
    ("she quickly wrote a long letter", "P A V D J N"),
    ("the old man slept", "D J N V"),
    ("they often read old books", "P A V J N"),
    ("a small cat saw the big dog", "D J N V D J N"),
]


class Tagger(nn.Module):
    """Embeddings, an LSTM in both directions, and scores for each tag."""

    def __init__(self, words: int, tags: int, size: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size, padding_idx=0)
        self.lstm = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * size, tags)

    def forward(self, sentences: Tensor, lengths: Tensor) -> Tensor:
        """Scores (batch, length, tags); the LSTM does not see the padding."""
        packed = pack_padded_sequence(self.embedding(sentences), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.scores(states)


def main() -> None:
    """Train on six sentences, and tag a new one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a picture of the probability of each tag")
    arguments = parser.parse_args()

    words = {"<pad>": 0} | {w: i + 1 for i, w in enumerate(sorted({w for s, _ in SENTENCES for w in s.split()}))}
    tags = sorted({tag for _, each in SENTENCES for tag in each.split()})

    def encode(text: str) -> Tensor:
        return torch.tensor([words.get(each, 0) for each in text.split()])

    inputs = pad_sequence([encode(text) for text, _ in SENTENCES], batch_first=True)
    targets = pad_sequence(
        [torch.tensor([tags.index(each) for each in line.split()]) for _, line in SENTENCES], True, padding_value=-100
    )
    lengths = torch.tensor([len(text.split()) for text, _ in SENTENCES])
    torch.manual_seed(0)
    model = Tagger(len(words), len(tags))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(arguments.steps + 1):
        loss = nn.functional.cross_entropy(model(inputs, lengths).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}", flush=True)
    new = "the small dog read a letter"
    scores = model(encode(new)[None], torch.tensor([6]))[0]
    print(" ".join(f"{word}/{tags[tag]}" for word, tag in zip(new.split(), scores.argmax(1).tolist(), strict=True)))
    if arguments.out:
        save(scores.detach().softmax(1), new.split(), tags, arguments.out)


def save(probabilities: Tensor, words: list[str], tags: list[str], path: Path) -> None:
    """A column for each word, a row for each tag."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.imshow(probabilities.T.numpy(), cmap="Oranges", vmin=0, vmax=1)
    axes.set_xticks(range(len(words)), words)
    axes.set_yticks(range(len(tags)), tags)
    axes.set_title("probability of each tag")
    figure.savefig(path)


if __name__ == "__main__":
    main()
