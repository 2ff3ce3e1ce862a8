#!/usr/bin/env python3
"""write_gguf.py MODEL OUT [ADAPTERS]: a model of scripts/make-random-model as other servers take it.

OUT/model.gguf is the model in Q8_0. With ADAPTERS, OUT/a0, a1 … are so many random adapters of rank 16 on the queries
and values, as PEFT writes them, and OUT/a0.gguf … the same factors as llama.cpp takes them.
Needs the packages gguf and numpy. Rows of q and k stay in the order of the file: they are random anyway."""

import json
import pathlib
import sys

import gguf
import numpy

RANK, ALPHA = 16, 16
LAYER_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    plain = name.removesuffix(".weight")
    if plain in NAMES:
        return NAMES[plain] + ".weight"
    _, _, layer, rest = plain.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[rest]}.weight"


def tensors_of(folder):
    with open(folder / "model.safetensors", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    data = numpy.memmap(folder / "model.safetensors", mode="r", offset=8 + size)
    for name, each in header.items():
        if name == "__metadata__":
            continue
        begin, end = each["data_offsets"]
        halves = data[begin:end].view("<u2").astype(numpy.uint32)
        yield name, (halves << 16).view(numpy.float32).reshape(each["shape"])


def add_vocabulary(out, size):
    """Bytes, the two special tokens, one for what is unknown, and made-up words."""
    kind = gguf.TokenType
    tokens = [f"<0x{byte:02X}>" for byte in range(256)] + ["<s>", "</s>", "<unk>"]
    kinds = [kind.BYTE] * 256 + [kind.CONTROL, kind.CONTROL, kind.UNKNOWN]
    tokens += [f" word{number}" for number in range(len(tokens), size)]
    kinds += [kind.NORMAL] * (size - len(kinds))
    out.add_tokenizer_model("llama")
    out.add_token_list(tokens)
    out.add_token_scores([0.0] * size)
    out.add_token_types(kinds)
    out.add_bos_token_id(256)
    out.add_eos_token_id(257)
    out.add_unk_token_id(258)


def write_model(folder, config, path):
    out = gguf.GGUFWriter(path, "llama")
    head = config["hidden_size"] // config["num_attention_heads"]
    out.add_block_count(config["num_hidden_layers"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_rope_dimension_count(head)
    out.add_rope_freq_base(config["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_vocab_size(config["vocab_size"])
    out.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    add_vocabulary(out, config["vocab_size"])
    for name, values in tensors_of(folder):
        if values.ndim == 1:
            out.add_tensor(gguf_name(name), values)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            out.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)
    finish(out)


def factors_of(config, number):
    """(layer, projection, A, B) of an adapter."""
    random = numpy.random.default_rng(number)
    hidden = config["hidden_size"]
    heads = {"q": config["num_attention_heads"], "v": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        for projection, count in heads.items():
            outputs = hidden // config["num_attention_heads"] * count
            yield layer, projection, *(
                random.normal(0, 0.02, shape).astype(numpy.float32) for shape in ((RANK, hidden), (outputs, RANK))
            )


def write_peft(config, number, folder):
    folder.mkdir(exist_ok=True)
    settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": ["q_proj", "v_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    header, blob = {}, b""
    for layer, projection, a, b in factors_of(config, number):
        for side, values in (("A", a), ("B", b)):
            name = f"base_model.model.model.layers.{layer}.self_attn.{projection}_proj.lora_{side}.weight"
            header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(blob), len(blob) + values.nbytes]}
            blob += values.tobytes()
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + blob)


def write_lora_gguf(config, number, path):
    out = gguf.GGUFWriter(path, "llama")
    out.add_type(gguf.GGUFType.ADAPTER)
    out.add_string(gguf.Keys.Adapter.TYPE, "lora")
    out.add_float32(gguf.Keys.Adapter.LORA_ALPHA, ALPHA)
    for layer, projection, a, b in factors_of(config, number):
        out.add_tensor(f"blk.{layer}.attn_{projection}.weight.lora_a", a)
        out.add_tensor(f"blk.{layer}.attn_{projection}.weight.lora_b", b)
    finish(out)


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder, made = map(pathlib.Path, sys.argv[1:3])
    config = json.loads((folder / "config.json").read_text())
    made.mkdir(parents=True, exist_ok=True)
    write_model(folder, config, made / "model.gguf")
    for number in range(int(sys.argv[3]) if len(sys.argv) == 4 else 0):
        write_peft(config, number, made / f"a{number}")
        write_lora_gguf(config, number, made / f"a{number}.gguf")


main()
