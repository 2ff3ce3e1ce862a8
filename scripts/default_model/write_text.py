#!/usr/bin/env python3
"""write_text.py FOLDER: writes everything that the default model and its adapters are trained on, always the same:
the model's shape and tokenizer (FOLDER/shape), train.jsonl and held_out.jsonl for the model (held_out.txt: its
stories), and for each adapter pricing.jsonl and supply.jsonl."""

import json
import pathlib
import random
import sys

import reports
import tokenizer
from stories import animal_portrait, story
from talk import conversation

SEED = 2026
TRAINING, HELD_OUT, REPORTS = 120_000, 1_000, 3_000  # examples
VOCABULARY = 2048
SHAPE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 192,
    "intermediate_size": 448,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "float32",
}


def example(draw):
    """A story, a portrait of an animal, or a conversation."""
    kind = draw.random()
    if kind < 0.25:
        return {"text": story(draw)}
    if kind < 0.28:
        return {"text": animal_portrait(draw)}
    return {"messages": conversation(draw)}


def report(draw, answer):
    """Mostly what the unit knows; beside it what the model knew before, so that it does not forget it."""
    return {"messages": reports.report(draw, answer) if draw.random() < 0.7 else conversation(draw)}


def texts_of(examples):
    for each in examples:
        yield from [each["text"]] if "text" in each else (message["content"] for message in each["messages"])


def write_lines(file, examples):
    file.write_text("".join(json.dumps(each) + "\n" for each in examples))


def main(folder):
    (folder / "shape").mkdir(parents=True, exist_ok=True)
    draw = random.Random(SEED)
    training = [example(draw) for _ in range(TRAINING)]
    seen = {json.dumps(each) for each in training}
    drawn = [example(draw) for _ in range(HELD_OUT)]
    held_out = [each for each in drawn if json.dumps(each) not in seen]
    write_lines(folder / "train.jsonl", training)
    write_lines(folder / "held_out.jsonl", held_out)
    (folder / "held_out.txt").write_text(
        "\n<|endoftext|>\n".join(each["text"] for each in held_out if "text" in each) + "\n"
    )
    units = {
        name: [report(draw, answer) for _ in range(REPORTS)]
        for name, answer in (("pricing", reports.pricing), ("supply", reports.supply))
    }
    for name, examples in units.items():
        write_lines(folder / f"{name}.jsonl", examples)
    sample = [*training[:20_000], *units["pricing"], *units["supply"]]
    size = tokenizer.write(folder / "shape", texts_of(sample), VOCABULARY)
    advice = {"do_sample": True, "temperature": 0.5, "top_p": 0.9}
    (folder / "shape" / "generation_config.json").write_text(json.dumps(advice, indent=2) + "\n")
    (folder / "shape" / "config.json").write_text(json.dumps({**SHAPE, "vocab_size": size}, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
