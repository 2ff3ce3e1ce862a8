#!/usr/bin/env python3
"""Writes tests/fixtures/tokenizers: tiny tokenizer.json files and the ids that the `tokenizers` library gives.

usage: scripts/make_tokenizer_fixtures.py [FOLDER]      (needs the Python package `tokenizers`)

Each NAME.json is a tokenizer, each NAME.expected.json a list of {"text", "ids", "plain_ids", "decoded"}: ids with the
tokenizer's own BOS and EOS, ids without, and what the library makes of the latter again.
"""
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "The river runs past the old mill, and the miller's daughter counts the sacks: 12, 24, 36.",
    "They're late! We've waited since 1987; I'll go, you'd stay, it's fine.",
    "for (int i = 0; i < 100; ++i) {\n    total += values[i];\n}\n\n",
    "Die Mühle steht am Fluß, größer als zuvor. Où est le café déjà fermé ?",
    "Река течёт мимо старой мельницы. 川は古い水車小屋のそばを流れる。",
    "the then there these those other mother brother runs running runner",
] * 4

TEXTS = [
    "", " ", "  ", "\n", "\n\n \n", "\t x", "Hello world", " Hello  world ", "the miller's daughter", "THEY'RE here, We'VE",
    "it\u017f 'S 'Ll", "1 12 123 1234 12345", "x = 3.14;\n\n\treturn x;\r\n", "a\u00a0b\u3000c\u2003d", "caf\u00e9 cafe\u0301",
    "s\u0323\u0307 \u1e69 s\u0307\u0323", "\u212b \u0344 \u1100\u1161\u11a8 \uac01", "o\u0308\u0304\u0323", "\u0958 \u2126 \ufb1d",
    "\u6c34\u8eca\u5c0f\u5c4b", "\U0001f600\U0001f469\u200d\U0001f680", "\u0661\u0662\u0663 \u00b2\u00bd", "!!!...???\n\n", "___a_b",
    "<|start|>user\nHi<|stop|>\n", "<|start|><|stop|>", "x<|stop|>y", "  <|left|>  <|right|>  z", "word wordy word.", "sword word",
    "<tool> \u00c9 e\u0301 <tool>", "\u2581under \u2581\u2581", "<0x41>", "\u180ea \u0085b \u200bc", "the" * 30, "a" * 90, " \n" * 20,
]

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

ADDED = [
    AddedToken("<|start|>", special=True, normalized=False),
    AddedToken("<|stop|>", special=True, normalized=False),
    AddedToken("<|left|>", special=True, normalized=False, lstrip=True),
    AddedToken("<|right|>", special=True, normalized=False, rstrip=True),
    AddedToken("word", normalized=False, single_word=True),
    AddedToken("<tool>", normalized=False),
    AddedToken("e\u0301", normalized=True),
]


def template(tokenizer, before, after):
    around = [(token, tokenizer.token_to_id(token)) for token in before + after]
    return processors.TemplateProcessing(single=" ".join(before + ["$A"] + after), special_tokens=around)


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def llama3_like():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = split_then_bytes(LLAMA3)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), template(tokenizer, ["<|start|>"], [])])
    return tokenizer


def byte_level(pattern):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split_then_bytes(pattern)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def qwen2_like():
    tokenizer = byte_level(QWEN2)
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def mistral_like():
    """Spaces made visible, byte fallback, an end token of its own."""
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.train_from_iterator([" ".join(CORPUS[:2])] + " ".join(CORPUS).split(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=first, show_progress=False))
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = template(tokenizer, ["<s>"], ["</s>"])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def gemma_like():
    """Spaces made visible by the normalizer, none added; runs of them and of ends of lines are tokens."""
    first = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.train_from_iterator(CORPUS + " ".join(CORPUS).split(), trainers.BpeTrainer(
        vocab_size=420, special_tokens=first, show_progress=False))
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("\n\n", "\n\n\n", "\u2581\u2581", "\t\t")])
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = template(tokenizer, ["<bos>"], [])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def only_first_special(content, count):
    """The trainer makes added tokens of all that it was told to know: bytes are not looked for in texts."""
    content["added_tokens"] = [t for t in content["added_tokens"] if t["id"] < count or not t["content"].startswith("<0x")]
    return content


def with_merges_as_texts(content):
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    return content


def write(folder, name, content):
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    tokenizer = Tokenizer.from_str(text)
    rows = []
    for each in TEXTS:
        plain = tokenizer.encode(each, add_special_tokens=False).ids
        rows.append({"text": each, "ids": tokenizer.encode(each).ids, "plain_ids": plain,
                     "decoded": tokenizer.decode(plain, skip_special_tokens=False)})
    lines = ",\n".join(json.dumps(row) for row in rows)
    (folder / f"{name}.expected.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tests/fixtures/tokenizers"
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, "llama3_like", json.loads(llama3_like().to_str()))
    write(folder, "qwen2_like", with_merges_as_texts(json.loads(qwen2_like().to_str())))
    write(folder, "phi4_mini_like", json.loads(byte_level(GPT4O).to_str()))
    write(folder, "gemma_like", only_first_special(json.loads(gemma_like().to_str()), 4))
    write(folder, "mistral_like", only_first_special(json.loads(mistral_like().to_str()), 3))


if __name__ == "__main__":
    main()
