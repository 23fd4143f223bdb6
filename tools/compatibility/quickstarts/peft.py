"""PEFT: a small GPT-2 with low-rank adapters, trained, merged and saved; prefix tuning of the same."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, PrefixTuningConfig, TaskType, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def base():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    return GPT2LMHeadModel(config).eval()


def main():
    ids = torch.randint(0, 50, (2, 12))
    model = get_peft_model(base(), LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, lora_alpha=8, lora_dropout=0.0))
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(base(), folder).eval()
        loaded = again(ids).logits
    with torch.no_grad():
        merged = model.merge_and_unload()(ids).logits
    prefix = get_peft_model(base(), PrefixTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=4))
    tuned = prefix(input_ids=ids, labels=ids).loss
    tuned.backward()
    return {
        "losses": losses,
        "merged": merged,
        "loaded": loaded,
        "trainable": prefix.get_nb_trainable_parameters(),
        "prefix": tuned,
    }
