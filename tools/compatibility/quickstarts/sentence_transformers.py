"""Sentence Transformers: a small BERT with mean pooling encodes sentences, is trained, and finds neighbours."""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from transformers import BertConfig, BertModel, BertTokenizer

SENTENCES = ["a cat sits on the mat", "the dog runs in the park", "a cat lies on the mat", "stars shine at night"]


def main():
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocab.txt"
        vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
        BertTokenizer(str(vocabulary)).save_pretrained(folder)
        config = BertConfig(
            vocab_size=5 + len(words),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=32,
        )
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
        word_model = models.Transformer(folder, max_seq_length=16)
    pooling = models.Pooling(word_model.get_word_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[word_model, pooling], device="cpu")
    before = model.encode(SENTENCES, convert_to_tensor=True)
    hits = util.semantic_search(before[:1], before, top_k=3)[0]
    loss_function = losses.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    model.eval()
    for _ in range(3):
        features = [model.tokenize(SENTENCES[:2]), model.tokenize(SENTENCES[2:])]
        optimizer.zero_grad()
        loss = loss_function(features, None)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return {
        "before": before,
        "hits": [each["corpus_id"] for each in hits],
        "losses": found,
        "similarity": model.similarity(model.encode(SENTENCES), model.encode(SENTENCES)),
    }
