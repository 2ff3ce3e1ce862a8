#!/usr/bin/env python3
"""Makes tests/fixtures/gguf_blocks.gguf: random blocks of each type that GGUF files quantize with, and beside each what
the package gguf (needed here, with numpy) reads from them. A second run writes the same bytes."""
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

FILE = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "gguf_blocks.gguf"
ELEMENTS = 512
SCALES_AT = {  # where a block has f16 scales: random bits there could be infinite
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82],
    Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0],
    Type.MXFP4: [],
}


def random_blocks(rng, kind):
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ELEMENTS // elements, size), dtype=np.uint8)
    for at in SCALES_AT[kind]:
        scales = rng.normal(0, 0.1, len(blocks)).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    if kind == Type.MXFP4:  # has an exponent there
        blocks[:, 0] = blocks[:, 0] % 40 + 100
    return blocks.reshape(1, -1)


def main():
    rng = np.random.default_rng(1)
    writer = GGUFWriter(FILE, "llama")
    for kind in SCALES_AT:
        blocks = random_blocks(rng, kind)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        writer.add_tensor(kind.name + ".floats", dequantize(blocks, kind).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
