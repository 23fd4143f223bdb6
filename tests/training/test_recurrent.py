"""Recurrent networks: classification, translation, text, speech."""

from __future__ import annotations

from typing import Any

from .alike import Run, descend, same_training, train


@same_training
def test_rnn_of_the_notes(T: Any) -> Run:
    """A recurrence made of linear layers, as in users' notes; the losses of all time steps are added."""
    nn = T.nn

    class RNN(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, data_size: int, hidden_size: int, output_size: int) -> None:
            super().__init__()
            self.hidden_size = hidden_size
            self.i2h = nn.Linear(data_size + hidden_size, hidden_size)
            self.h2o = nn.Linear(hidden_size, output_size)

        def forward(self, data: Any, last_hidden: Any) -> Any:
            hidden = self.i2h(T.cat((data, last_hidden), 1))
            return hidden, self.h2o(hidden)

    model = RNN(50, 20, 10)
    criterion = nn.MSELoss()

    def loss(batch: Any, target: Any) -> Any:
        hidden, total = T.zeros(len(batch), 20), 0
        for _ in range(5):
            hidden, output = model(batch, hidden)
            total += criterion(output, target)
        return total

    optimizer = T.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return train(T, model, descend(T, model, loss, optimizer), (T.randn(20, 50), T.zeros(20, 10)), size=10)


@same_training
def test_lstm_classifier(T: Any) -> Run:
    """Two layers with dropout between them; clipped gradients."""
    nn = T.nn

    class Classifier(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(5, 8, num_layers=2, batch_first=True, dropout=0.3)
            self.fc = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            _, (hidden, _) = self.lstm(x)
            return self.fc(hidden[-1])

    model = Classifier()
    optimizer = T.optim.Adam(model.parameters(), lr=2e-2)
    criterion = nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, clip=0.5)
    return train(T, model, step, (T.randn(20, 6, 5), T.randint(3, (20,))), size=5)


@same_training
def test_gru_seq2seq(T: Any) -> Run:
    """An encoder and a decoder that learns from its teacher or from itself, as a coin says."""
    nn = T.nn

    class Seq2Seq(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.source = nn.Embedding(12, 6, padding_idx=0)
            self.target = nn.Embedding(10, 6)
            self.encoder = nn.GRU(6, 8)
            self.decoder = nn.GRUCell(6, 8)
            self.out = nn.Linear(8, 10)

        def forward(self, source: Any, target: Any) -> Any:
            _, hidden = self.encoder(self.source(source))
            hidden, token, outputs = hidden[0], target[0], []
            for position in range(1, len(target)):
                hidden = self.decoder(self.target(token), hidden)
                outputs.append(self.out(hidden))
                token = target[position] if float(T.rand(())) < 0.5 else outputs[-1].argmax(1)
            return T.stack(outputs)

    model = Seq2Seq()
    optimizer = T.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()

    def loss(source: Any, target: Any) -> Any:
        logits = model(source.t(), target.t())
        return criterion(logits.reshape(-1, 10), target.t()[1:].reshape(-1))

    step = descend(T, model, loss, optimizer)
    return train(T, model, step, (T.randint(12, (15, 5)), T.randint(10, (15, 4))), size=5)


@same_training
def test_bidirectional_lstm_with_packed_sequences(T: Any) -> Run:
    """Sequences of different lengths, packed and padded again."""
    nn, rnn = T.nn, T.nn.utils.rnn

    class Tagger(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 6, bidirectional=True, batch_first=True)
            self.fc = nn.Linear(12, 3)

        def forward(self, x: Any, lengths: Any) -> Any:
            packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            output, _ = self.lstm(packed)
            output, _ = rnn.pad_packed_sequence(output, batch_first=True, total_length=x.size(1))
            return self.fc(output)

    model = Tagger()
    optimizer = T.optim.RMSprop(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss(ignore_index=-1)

    def loss(x: Any, lengths: Any, tags: Any) -> Any:
        tags = tags.masked_fill(T.arange(x.size(1)) >= lengths[:, None], -1)
        return criterion(model(x, lengths).transpose(1, 2), tags)

    data = T.randn(16, 7, 4), T.randint(1, 8, (16,)), T.randint(3, (16, 7))
    return train(T, model, descend(T, model, loss, optimizer), data, size=4)


@same_training
def test_character_rnn(T: Any) -> Run:
    """A text model that carries its state from batch to batch, detached."""
    nn = T.nn

    class CharRNN(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, characters: int) -> None:
            super().__init__()
            self.embedding = nn.Embedding(characters, 8)
            self.rnn = nn.RNN(8, 12, num_layers=2, nonlinearity="tanh", dropout=0.1)
            self.out = nn.Linear(12, characters)

        def forward(self, text: Any, state: Any = None) -> Any:
            output, state = self.rnn(self.embedding(text), state)
            return self.out(output), state

    text = "the quick brown fox jumps over the lazy dog and runs away from the quick lazy dog again " * 2
    alphabet = sorted(set(text))
    codes = T.tensor([alphabet.index(character) for character in text])[:160].view(20, 8)
    model = CharRNN(len(alphabet))
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    memory: list[Any] = [None]

    def loss(lines: Any) -> Any:
        logits, state = model(lines.t()[:-1], memory[0])
        memory[0] = state.detach()
        return criterion(logits.flatten(0, 1), lines.t()[1:].flatten())

    return train(T, model, descend(T, model, loss, optimizer, clip=1.0), (codes,), size=4)


@same_training
def test_speech_with_ctc(T: Any) -> Run:
    """Convolution over time, a bidirectional GRU, connectionist temporal classification."""
    nn = T.nn

    class Speech(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(6, 8, 3, stride=2, padding=1)
            self.norm = nn.BatchNorm1d(8)
            self.gru = nn.GRU(8, 6, bidirectional=True)
            self.out = nn.Linear(12, 5)

        def forward(self, x: Any) -> Any:
            x = T.nn.functional.hardtanh(self.norm(self.conv(x)), 0, 20)
            output, _ = self.gru(x.permute(2, 0, 1))
            return self.out(output).log_softmax(-1)

    model = Speech()
    optimizer = T.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)

    def loss(x: Any, words: Any, lengths: Any) -> Any:
        scores = model(x)
        return criterion(scores, words, T.full((len(x),), len(scores)), lengths)

    data = T.randn(12, 6, 20), T.randint(1, 5, (12, 4)), T.randint(1, 5, (12,))
    return train(T, model, descend(T, model, loss, optimizer), data, size=4)


@same_training
def test_lstm_with_projection_and_cells(T: Any) -> Run:
    """A projected LSTM feeding LSTM cells, to forecast a series; the rate follows a plateau."""
    nn = T.nn

    class Forecaster(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(1, 8, proj_size=3)
            self.cell = nn.LSTMCell(3, 5)
            self.out = nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            features, _ = self.lstm(x)
            state = None
            for feature in features:
                state = self.cell(feature, state)
            return self.out(state[0])

    model = Forecaster()
    optimizer = T.optim.Adam(model.parameters(), lr=1e-2)
    plateau = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.3)
    ordinary = descend(T, model, lambda x: T.nn.functional.mse_loss(model(x.t()[:-1, :, None]), x[:, -1:]), optimizer)

    def step(x: Any) -> float:
        loss = ordinary(x)
        plateau.step(loss)
        return loss

    series = T.sin(T.arange(9) * 0.7 + T.rand(16, 1) * 6)
    return train(T, model, step, (series,), size=4)


@same_training
def test_closures(T: Any) -> Run:
    """LBFGS evaluates its closure several times in a step."""
    nn = T.nn
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = T.optim.LBFGS(model.parameters(), lr=0.3, max_iter=2, history_size=4)

    def step(x: Any, y: Any) -> float:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        return float(optimizer.step(closure).detach())

    return train(T, model, step, (T.randn(12, 3), T.randn(12, 1)), size=12)
