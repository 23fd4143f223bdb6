"""Networks of sequences: words by an LSTM and a transformer, sines by LSTM cells, translation, names, tagging."""

import math

import torch
from torch import nn
from torch.nn import functional as F

WORDS = 40


def stream(length=1200):
    """Words of which each mostly follows from the last."""
    generator = torch.Generator().manual_seed(2)
    follows, words = torch.randint(0, WORDS, (WORDS,), generator=generator).tolist(), [0]
    chances = torch.rand(length, generator=generator).tolist()
    others = torch.randint(0, WORDS, (length,), generator=generator).tolist()
    for chance, other in zip(chances, others, strict=True):
        words.append(follows[words[-1]] if chance < 0.8 else other)
    return torch.tensor(words)


def batches(steps=50, columns=8, length=6):
    data = stream()
    rows = len(data) // columns
    table = data[: rows * columns].view(columns, -1).t().contiguous()
    for step in range(steps):
        start = step * length % (rows - length - 1)
        yield table[start : start + length], table[start + 1 : start + 1 + length].reshape(-1)


def word_lstm():
    embedding, rnn, head = nn.Embedding(WORDS, 24), nn.LSTM(24, 24, 2, dropout=0.2), nn.Linear(24, WORDS)
    head.weight = embedding.weight
    parts = nn.ModuleList([embedding, rnn, head])
    hidden, losses = (torch.zeros(2, 8, 24), torch.zeros(2, 8, 24)), []
    for x, y in batches():
        parts.zero_grad()
        hidden = tuple(each.detach() for each in hidden)
        out, hidden = rnn(F.dropout(embedding(x), 0.2), hidden)
        loss = F.cross_entropy(head(out).view(-1, WORDS), y)
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 0.25)
        with torch.no_grad():
            for each in parts.parameters():
                each.add_(each.grad, alpha=-2.0)
        losses.append(loss.item())
    return {"losses": losses}


def word_transformer():
    layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.1)
    encoder, embedding, head = nn.TransformerEncoder(layer, 2), nn.Embedding(WORDS, 24), nn.Linear(24, WORDS)
    parts = nn.ModuleList([encoder, embedding, head])
    place = torch.arange(6).unsqueeze(1) * torch.exp(torch.arange(0, 24, 2) * (-math.log(10000.0) / 24))
    code = torch.zeros(6, 1, 24)
    code[:, 0, 0::2], code[:, 0, 1::2] = torch.sin(place), torch.cos(place)
    optimizer, losses = torch.optim.SGD(parts.parameters(), lr=0.5), []
    mask = torch.log(torch.tril(torch.ones(6, 6)))
    for x, y in batches():
        out = F.log_softmax(head(encoder(embedding(x) * math.sqrt(24) + code, mask=mask)), dim=-1)
        loss = F.nll_loss(out.view(-1, WORDS), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def sines():
    """LSTM cells continue sines; L-BFGS in double precision."""
    shift = torch.arange(8, dtype=torch.float64)[:, None]
    data = torch.sin((torch.arange(30, dtype=torch.float64) + 4 * shift) / 5.0)
    first, second, head = (each.double() for each in (nn.LSTMCell(1, 12), nn.LSTMCell(12, 12), nn.Linear(12, 1)))
    parts = nn.ModuleList([first, second, head])

    def run(x, future=0):
        a = b = c = d = torch.zeros(len(x), 12, dtype=torch.float64)
        outputs = []
        for step in x.split(1, dim=1):
            a, b = first(step, (a, b))
            c, d = second(a, (c, d))
            outputs.append(head(c))
        for _ in range(future):
            a, b = first(outputs[-1], (a, b))
            c, d = second(a, (c, d))
            outputs.append(head(c))
        return torch.cat(outputs, dim=1)

    optimizer, losses = torch.optim.LBFGS(parts.parameters(), lr=0.5, max_iter=8), []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(run(data[:, :-1]), data[:, 1:])
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(5):
        optimizer.step(closure)
    with torch.no_grad():
        return {"losses": losses, "future": run(data[:2, :-1], future=10)}


def translation():
    """Sequences are reversed by an encoder, and a decoder with attention."""
    embedding, encoder, decoder = nn.Embedding(12, 16), nn.GRU(16, 16, batch_first=True), nn.GRUCell(32, 16)
    score, head = nn.Linear(16, 16, bias=False), nn.Linear(16, 12)
    parts = nn.ModuleList([embedding, encoder, decoder, score, head])
    optimizer, losses = torch.optim.Adam(parts.parameters(), lr=1e-2), []
    for _ in range(50):
        x = torch.randint(2, 12, (16, 6))
        y = x.flip(1)
        memory, hidden = encoder(embedding(x))
        hidden, word, loss = hidden[0], torch.ones(16, dtype=torch.long), 0.0
        for step in range(6):
            weights = torch.softmax(torch.bmm(memory, score(hidden).unsqueeze(2)), dim=1)
            seen = (weights * memory).sum(1)
            hidden = decoder(torch.cat([embedding(word), seen], 1), hidden)
            loss = loss + F.cross_entropy(head(hidden), y[:, step])
            word = y[:, step]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


NAMES = ["anna", "otto", "maria", "igor", "lucia", "ivan", "sofia", "oleg", "elena", "boris"]


def names():
    """Letters of names through a recurrent network of linear layers; the ending tells the class."""
    inner, outer = nn.Linear(26 + 16, 16), nn.Linear(26 + 16, 2)
    parts, losses = nn.ModuleList([inner, outer]), []
    for step in range(50):
        name = NAMES[step * 7 % len(NAMES)]
        letters = F.one_hot(torch.tensor([ord(each) - 97 for each in name]), 26).float()
        hidden = torch.zeros(1, 16)
        for letter in letters:
            both = torch.cat((letter[None], hidden), 1)
            hidden, out = torch.tanh(inner(both)), F.log_softmax(outer(both), dim=1)
        loss = F.nll_loss(out, torch.tensor([int(name.endswith("a"))]))
        parts.zero_grad()
        loss.backward()
        for each in parts.parameters():
            each.data.add_(each.grad.data, alpha=-0.2)
        losses.append(loss.item())
    return {"losses": losses}


def tagging():
    """Bags of words are classified; sentences of many lengths are packed and tagged."""
    bag, head = nn.EmbeddingBag(WORDS, 16, mode="mean"), nn.Linear(16, 3)
    embedding, rnn, tags = (
        nn.Embedding(WORDS, 16),
        nn.LSTM(16, 8, bidirectional=True, batch_first=True),
        nn.Linear(16, 3),
    )
    parts = nn.ModuleList([bag, head, embedding, rnn, tags])
    optimizer = torch.optim.Adagrad(parts.parameters(), lr=0.1)
    losses = []
    for _ in range(50):
        lengths = torch.randint(2, 8, (6,))
        sentences = [torch.randint(0, WORDS, (int(length),)) for length in lengths]
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
        loss = F.cross_entropy(
            head(bag(torch.cat(sentences), offsets)), torch.stack([each[0] % 3 for each in sentences])
        )
        padded = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(embedding(padded), lengths, batch_first=True, enforce_sorted=False)
        out, _ = nn.utils.rnn.pad_packed_sequence(rnn(packed)[0], batch_first=True)
        wanted = nn.utils.rnn.pad_sequence([each % 3 for each in sentences], batch_first=True, padding_value=-100)
        loss = loss + F.cross_entropy(tags(out).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


CASES = {
    "word language model, LSTM": word_lstm,
    "word language model, transformer": word_transformer,
    "time sequence prediction": sines,
    "translation with attention": translation,
    "names by their letters": names,
    "bags and packed sequences": tagging,
}
