"""A byte-level BPE tokenizer, learned from text: the pairs that are most often neighbours become one token."""

import collections
import json
import re

# How GPT-2 splits text into words, for ASCII.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")
BEGIN, END, SYSTEM, USER, ASSISTANT = SPECIAL = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
# The model knows questions and answers only: the template leaves system messages out, which it would not understand.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] in ['user', 'assistant'] %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def byte_alphabet():
    """Every byte as a character that can be seen: itself where it is one, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {**{byte: chr(byte) for byte in seen}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


def join(parts, pair):
    joined, i = [], 0
    while i < len(parts):
        both = tuple(parts[i : i + 2]) == pair
        joined.append(parts[i] + parts[i + 1] if both else parts[i])
        i += 2 if both else 1
    return joined


def learn(texts, size):
    """Returns the alphabet and the merges, most frequent first, ties in the order of the alphabet."""
    alphabet = byte_alphabet()
    counts = collections.Counter(word for text in texts for word in WORD.findall(text))
    words = {word: [alphabet[byte] for byte in word.encode()] for word in counts}
    merges = []
    while len(SPECIAL) + len(alphabet) + len(merges) < size:
        pairs = collections.Counter()
        for word, parts in words.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word, parts in words.items():
            if best[0] in parts:
                words[word] = join(parts, best)
    return list(alphabet.values()), merges


def write(folder, texts, size):
    """tokenizer.json and tokenizer_config.json, as Hugging Face's libraries read them. Returns the number of tokens."""
    alphabet, merges = learn(texts, size)
    tokens = [*SPECIAL, *alphabet, *(left + right for left, right in merges)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [
        {
            "id": i,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, text in enumerate(SPECIAL)
    ]
    first = {"SpecialToken": {"id": BEGIN, "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {BEGIN: {"id": BEGIN, "ids": [0], "tokens": [BEGIN]}},
    }
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {token: i for i, token in enumerate(tokens)},
        "merges": [list(pair) for pair in merges],
    }
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": template,
        "decoder": level,
        "model": model,
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "add_bos_token": True,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False, indent=None) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return len(tokens)
