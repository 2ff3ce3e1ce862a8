#!/usr/bin/env python3
"""Makes tests/fixtures/golden: tiny random models, an adapter for each, and what transformers + peft compute with them.

Needs torch, transformers, peft and safetensors; nothing else of the project needs Python. A second run writes the same
bytes. Each model takes the first seed whose greedy texts are lively (no loop) and safe (no near tie at any step).
"""
import json
import shutil
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, Mxfp4Config
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "golden"
PROMPT, ANSWER = 24, 64
MARGIN = 2e-3  # between best and second-best logit, relative to the largest: far above what summation order moves
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 256, "rope_theta": 10000.0, "rope_scaling": None, "pretraining_tp": 1,
    "initializer_range": 0.02, "use_cache": True, "bos_token_id": 0, "tie_word_embeddings": False,
}


def sizes(hidden, heads, kv_heads, ffn, vocab):
    return {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": ffn, "vocab_size": vocab, "num_hidden_layers": 2}


MODELS = {
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "n_ctx": 160,
        "n_positions": 160, "n_embd": 32, "n_head": 2, "n_layer": 2, "n_inner": 72, "vocab_size": 97,
        "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
        "initializer_range": 0.02, "bos_token_id": 96, "torch_dtype": "float16",
    },
    "llama": LLAMA | sizes(32, 4, 2, 44, 96) | {"torch_dtype": "float32"},
    "llama-tied-llama3": LLAMA | sizes(64, 4, 1, 40, 96) | {
        "attention_bias": False, "mlp_bias": False, "head_dim": 16, "tie_word_embeddings": True, "rope_theta": 10000.0,
        "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64, "rope_type": "llama3"},
        "torch_dtype": "bfloat16",
    },
    "llama-linear": LLAMA | sizes(32, 4, 1, 40, 99) | {
        "rope_scaling": {"type": "linear", "factor": 2.5}, "rms_norm_eps": 1e-6, "torch_dtype": "float16"},
    "mistral": sizes(32, 2, 1, 40, 100) | {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "max_position_embeddings": 512, "rope_theta": 1000000.0, "sliding_window": 16, "initializer_range": 0.02,
        "use_cache": True, "bos_token_id": 1, "tie_word_embeddings": False, "torch_dtype": "float16",
    },
    "qwen2": sizes(32, 4, 2, 76, 98) | {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "max_position_embeddings": 512, "max_window_layers": 2, "rope_theta": 1000000.0, "sliding_window": 512,
        "use_sliding_window": False, "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True,
        "bos_token_id": 3, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    },
    "qwen3": sizes(32, 4, 2, 40, 104) | {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": False, "hidden_act": "silu",
        "head_dim": 16, "max_position_embeddings": 256, "max_window_layers": 2, "rms_norm_eps": 1e-6,
        "rope_scaling": None, "rope_theta": 1000000.0, "sliding_window": None, "use_sliding_window": False,
        "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    },
}
MODELS["qwen3-yarn"] = MODELS["qwen3"] | {
    "rope_theta": 1000.0,
    "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 4.0, "beta_slow": 0.5,
                     "rope_type": "yarn"},
}
MODELS["phi3"] = sizes(64, 4, 2, 40, 101) | {
    "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "attention_bias": False, "attention_dropout": 0.0,
    "embd_pdrop": 0.0, "resid_pdrop": 0.0, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "max_position_embeddings": 256, "original_max_position_embeddings": 16, "partial_rotary_factor": 0.75,
    "rope_scaling": {"type": "longrope", "long_factor": [1.0, 1.5, 2.0, 4.0, 8.0, 16.0],
                     "short_factor": [1.0, 1.0, 1.0, 1.25, 1.5, 2.0]},
    "sliding_window": 40, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3, "pad_token_id": 0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
MODELS["smollm3"] = sizes(32, 4, 2, 40, 102) | {
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "attention_bias": False, "mlp_bias": False,
    "attention_dropout": 0.0, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 5000000.0, "rope_scaling": None,
    "max_position_embeddings": 256, "no_rope_layers": [1, 0], "no_rope_layer_interval": 2, "sliding_window": None,
    "use_sliding_window": False, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3, "pad_token_id": 0,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}
MODELS["gemma3"] = sizes(32, 4, 2, 40, 103) | {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "attention_bias": False,
    "attention_dropout": 0.0, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 16, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 256, "query_pre_attn_scalar": 12, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 16,
    "sliding_window_pattern": 2, "attn_logit_softcapping": None, "final_logit_softcapping": None,
    "initializer_range": 0.02, "use_cache": True, "bos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
MODELS["qwen3-moe"] = MODELS["qwen3"] | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "decoder_sparse_step": 1,
    "mlp_only_layers": [], "moe_intermediate_size": 24, "norm_topk_prob": True, "num_experts": 6,
    "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001,
}
MODELS["mixtral"] = MODELS["mistral"] | {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "sliding_window": None, "num_local_experts": 5,
    "num_experts_per_tok": 3, "output_router_logits": False, "router_aux_loss_coef": 0.001,
}
MODELS["granite"] = sizes(32, 4, 2, 40, 105) | {
    "architectures": ["GraniteForCausalLM"], "model_type": "granite", "attention_bias": False, "mlp_bias": False,
    "attention_dropout": 0.0, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "max_position_embeddings": 256, "embedding_multiplier": 6.0, "residual_multiplier": 0.3,
    "attention_multiplier": 0.2, "logits_scaling": 4.0, "initializer_range": 0.02, "use_cache": True,
    "bos_token_id": 3, "pad_token_id": 0, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}
MODELS["olmo2"] = sizes(40, 4, 2, 44, 106) | {
    "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "attention_bias": False, "attention_dropout": 0.0,
    "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 500000.0, "rope_scaling": None,
    "max_position_embeddings": 256, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3, "pad_token_id": 0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
MODELS["olmo3"] = MODELS["olmo2"] | sizes(32, 4, 4, 40, 107) | {
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 4.0, "beta_slow": 0.5,
                     "attention_factor": 1.2, "rope_type": "yarn"},
}
MODELS["gemma2"] = sizes(32, 4, 2, 40, 108) | {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attention_bias": False, "attention_dropout": 0.0,
    "hidden_activation": "gelu_pytorch_tanh", "head_dim": 16, "rms_norm_eps": 1e-6, "max_position_embeddings": 256,
    "query_pre_attn_scalar": 12, "rope_theta": 10000.0, "sliding_window": 16, "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 0.25, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 2,
    "pad_token_id": 0, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}
MODELS["gpt-oss"] = sizes(32, 4, 2, 32, 109) | {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": True, "attention_dropout": 0.0,
    "hidden_act": "silu", "head_dim": 16, "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
    "initial_context_length": 16, "rope_theta": 1000.0,
    "rope_scaling": {"factor": 32.0, "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 0.5,
                     "rope_type": "yarn", "truncate": False},
    "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"], "num_local_experts": 5,
    "num_experts_per_tok": 3, "experts_per_token": 3, "swiglu_limit": 1.25, "output_router_logits": False,
    "router_aux_loss_coef": 0.001, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3, "pad_token_id": 0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
MODELS["gpt-oss-mxfp4"] = MODELS["gpt-oss"] | sizes(64, 2, 1, 32, 110) | {
    "head_dim": 32, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
}
MODELS["olmoe"] = MODELS["olmo2"] | sizes(32, 4, 2, 24, 111) | {
    "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "clip_qkv": None, "norm_topk_prob": False,
    "num_experts": 6, "num_experts_per_tok": 3, "output_router_logits": False, "router_aux_loss_coef": 0.01,
}
MODELS["granite-moe"] = MODELS["granite"] | sizes(32, 4, 2, 24, 112) | {
    "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe", "num_local_experts": 5,
    "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.0,
}
MODELS["granite-hybrid"] = MODELS["granite"] | sizes(32, 4, 2, 40, 113) | {
    "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "num_local_experts": 0,
    "num_experts_per_tok": 0, "shared_intermediate_size": 44, "layer_types": ["attention", "attention"],
    "position_embedding_type": "rope", "mamba_n_heads": 4, "mamba_d_head": 16,
}
MODELS["qwen2-moe"] = MODELS["qwen2"] | sizes(32, 4, 2, 40, 114) | {
    "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "decoder_sparse_step": 1,
    "mlp_only_layers": [], "moe_intermediate_size": 24, "norm_topk_prob": False, "num_experts": 6,
    "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 44,
}
MODELS["glm4-moe"] = sizes(32, 4, 2, 72, 115) | {
    "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "attention_bias": True,
    "attention_dropout": 0.0, "first_k_dense_replace": 1, "head_dim": 16, "hidden_act": "silu",
    "max_position_embeddings": 256, "moe_intermediate_size": 24, "n_group": 1, "n_routed_experts": 6,
    "n_shared_experts": 2, "norm_topk_prob": True, "num_experts_per_tok": 3, "num_nextn_predict_layers": 0,
    "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5, "rope_scaling": None, "rope_theta": 10000.0,
    "routed_scaling_factor": 1.5, "topk_group": 1, "use_qk_norm": True, "initializer_range": 0.02, "use_cache": True,
    "bos_token_id": 3, "pad_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
MODELS["ministral3"] = sizes(32, 4, 4, 40, 116) | {
    "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "head_dim": 8, "max_position_embeddings": 256, "sliding_window": None,
    "rope_parameters": {"type": "yarn", "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
                        "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 0.5, "mscale": 1.0,
                        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5},
    "initializer_range": 0.02, "use_cache": True, "bos_token_id": 1, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
MODELS["glm"] = sizes(32, 4, 2, 40, 117) | {
    "architectures": ["GlmForCausalLM"], "model_type": "glm", "attention_bias": True, "attention_dropout": 0.0,
    "head_dim": 16, "hidden_act": "silu", "max_position_embeddings": 256, "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1.5625e-07, "rope_theta": 10000.0, "initializer_range": 0.02, "use_cache": True,
    "pad_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
MODELS["glm4"] = MODELS["glm"] | sizes(32, 4, 2, 40, 118) | {
    "architectures": ["Glm4ForCausalLM"], "model_type": "glm4", "attention_bias": False, "head_dim": 24,
    "rms_norm_eps": 1e-5,
}
MODELS["ernie"] = sizes(32, 4, 2, 40, 119) | {
    "architectures": ["Ernie4_5ForCausalLM"], "model_type": "ernie4_5", "use_bias": True, "head_dim": 16,
    "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "initializer_range": 0.02, "use_cache": True, "bos_token_id": 1, "pad_token_id": 0, "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
MODELS["qwen3-vl-moe"] = {
    "architectures": ["Qwen3VLMoeForConditionalGeneration"], "model_type": "qwen3_vl_moe", "image_token_id": 118,
    "video_token_id": 117, "vision_start_token_id": 116, "vision_end_token_id": 115, "tie_word_embeddings": False,
    "text_config": sizes(32, 4, 2, 40, 120) | {
        "model_type": "qwen3_vl_moe_text", "attention_bias": False, "decoder_sparse_step": 1, "head_dim": 16,
        "hidden_act": "silu", "max_position_embeddings": 256, "mlp_only_layers": [], "moe_intermediate_size": 24,
        "num_experts": 6, "num_experts_per_tok": 2, "rms_norm_eps": 1e-6, "rope_theta": 5000000.0,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [2, 3, 3], "rope_type": "default"},
        "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3},
    "vision_config": {
        "model_type": "qwen3_vl_moe", "deepstack_visual_indexes": [0], "depth": 1, "hidden_size": 8,
        "intermediate_size": 8, "num_heads": 1, "num_position_embeddings": 4, "out_hidden_size": 32, "patch_size": 2,
        "temporal_patch_size": 1},
    "torch_dtype": "bfloat16",
}
MODELS["cohere"] = sizes(32, 4, 2, 40, 121) | {
    "architectures": ["CohereForCausalLM"], "model_type": "cohere", "attention_bias": True, "attention_dropout": 0.0,
    "hidden_act": "silu", "layer_norm_eps": 1e-5, "logit_scale": 0.25, "max_position_embeddings": 256,
    "rope_theta": 10000.0, "use_qk_norm": False, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 3,
    "pad_token_id": 0, "tie_word_embeddings": True, "torch_dtype": "float16",
}
MODELS["cohere2"] = MODELS["cohere"] | sizes(32, 4, 2, 40, 122) | {
    "architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "attention_bias": False, "sliding_window": 16,
    "sliding_window_pattern": 2, "torch_dtype": "bfloat16",
}
LINEAR_ATTENTION = {
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 32, "linear_num_key_heads": 2,
    "linear_num_value_heads": 4, "head_dim": 16, "hidden_act": "silu", "attention_bias": False,
    "attention_dropout": 0.0, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "initializer_range": 0.02,
    "use_cache": True, "bos_token_id": 3,
}
MODELS["qwen3.5"] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "image_token_id": 121,
    "video_token_id": 120, "vision_start_token_id": 119, "vision_end_token_id": 118, "tie_word_embeddings": True,
    "text_config": LINEAR_ATTENTION | sizes(32, 4, 2, 40, 123) | {
        "model_type": "qwen3_5_text", "num_hidden_layers": 3, "attn_output_gate": True,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "rope_parameters": {"mrope_interleaved": True, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5,
                            "rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": True},
    "vision_config": {
        "model_type": "qwen3_5", "depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1,
        "num_position_embeddings": 4, "out_hidden_size": 32, "patch_size": 2, "temporal_patch_size": 1},
    "torch_dtype": "bfloat16",
}
MODELS["qwen3.5-moe"] = LINEAR_ATTENTION | sizes(32, 4, 2, 40, 124) | {
    "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text", "full_attention_interval": 2,
    "linear_num_key_heads": 3, "linear_num_value_heads": 3, "moe_intermediate_size": 24, "num_experts": 6,
    "num_experts_per_tok": 2, "shared_expert_intermediate_size": 24, "output_router_logits": False,
    "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"},
    "router_aux_loss_coef": 0.001, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
del MODELS["qwen3.5-moe"]["intermediate_size"]
MODELS["qwen3-next"] = LINEAR_ATTENTION | sizes(32, 4, 2, 40, 125) | {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "full_attention_interval": 2,
    "linear_conv_kernel_dim": 3, "linear_key_head_dim": 32, "linear_value_head_dim": 16, "linear_num_value_heads": 6,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 24, "norm_topk_prob": True,
    "num_experts": 6, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 24, "output_router_logits": False,
    "partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_scaling": None, "router_aux_loss_coef": 0.001,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
SHARDED = {"llama"}
MXFP4_LEVELS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=np.float32)

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {name: dict(r=2, lora_alpha=4, target_modules=PROJECTIONS) for name in MODELS}
ADAPTERS["gpt2"] = dict(r=3, lora_alpha=6, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
ADAPTERS["mistral"] |= dict(r=3, lora_alpha=3, use_rslora=True)
ADAPTERS["phi3"]["target_modules"] = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]
for joined in ("glm", "glm4"):
    ADAPTERS[joined]["target_modules"] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj"]
ADAPTERS["granite-hybrid"]["target_modules"] = ["q_proj", "k_proj", "v_proj", "o_proj", "input_linear", "output_linear"]
for mixture in ("qwen3-moe", "mixtral", "gpt-oss", "gpt-oss-mxfp4", "olmoe", "granite-moe", "glm4-moe", "qwen3-vl-moe",
                "qwen3-next"):
    ADAPTERS[mixture]["target_modules"] = ["q_proj", "k_proj", "v_proj", "o_proj"]
ADAPTERS["qwen3"] |= dict(rank_pattern={"layers.1.self_attn.q_proj": 5, "down_proj": 3},
                          alpha_pattern={"layers.1.self_attn.q_proj": 7, "v_proj": 8})


def class_of(config):
    return AutoModelForImageTextToText if "vision_config" in config else AutoModelForCausalLM


def vocabulary(config):
    return config.get("text_config", config)["vocab_size"]


def drawn(rng, name, shape, config):
    """One parameter's values: matrices keep the signal's size, norms and biases are far from one and zero."""
    is_gemma = config["model_type"] in ("gemma2", "gemma3_text")  # adds one to norms, and multiplies embeddings by sqrt(hidden)
    noise = rng.standard_normal(shape).astype(np.float32)
    if name.endswith("A_log"):  # slow enough that early tokens count
        return -2 + noise
    if name.endswith("bias"):  # that of an expert's choice as well
        return 0.2 * noise
    if len(shape) == 1:
        adds_one = is_gemma or "linear_num_key_heads" in config.get("text_config", config)
        return (0 if adds_one and "linear_attn" not in name else 1) + 0.25 * noise
    if any(part in name for part in ("wte", "wpe", "embed")):
        is_scaled = is_gemma or config["model_type"].startswith(("granite", "cohere"))
        return (0.1 / np.sqrt(shape[1]) if is_scaled else 0.4) * noise  # small beside what the layers add, lest a tied head echo the last token
    inputs = shape[0] if ".c_" in name else shape[1] if ".experts." in name and config["model_type"] == "gpt_oss" else shape[-1]
    return {"q_proj": 2.0, "k_proj": 2.0, "c_attn": 2.0, "qkv_proj": 2.0}.get(name.split(".")[-2], 1.2) / np.sqrt(inputs) * noise


def in_mxfp4(name, value):
    """Blocks of 32 inputs, two codes a byte, and their exponents; [experts, inputs, outputs] lie as [experts, outputs, inputs]."""
    rows = value.float().numpy().transpose(0, 2, 1)
    groups = rows.reshape(*rows.shape[:2], -1, 32)
    exponents = np.floor(np.log2(np.abs(groups).max(-1))) - 2
    scaled = groups / np.exp2(exponents)[..., None]
    codes = np.abs(np.abs(scaled)[..., None] - MXFP4_LEVELS).argmin(-1) + 8 * (scaled < 0)
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)
    return {f"{name}_blocks": torch.from_numpy(blocks),
            f"{name}_scales": torch.from_numpy((exponents + 127).astype(np.uint8))}


def published(name, value, config):
    """Experts are one parameter in the library, and have tensors of their own in most published files."""
    if ".experts." not in name:
        return {name: value}
    if config["model_type"] == "gpt_oss":
        is_coded = "quantization_config" in config and value.dim() == 3
        return in_mxfp4(name, value) if is_coded else {name: value}
    if config["model_type"] == "granitemoe":
        return {name.replace("experts.gate_up_proj", "input_linear.weight").replace(
            "experts.down_proj", "output_linear.weight"): value}
    if config["model_type"] == "qwen3_vl_moe":
        return {name: value.transpose(1, 2)}
    if config["model_type"] == "qwen3_5_moe_text":
        return {name: value}
    module, kind = name.rsplit(".", 1)
    is_mixtral = ".block_sparse_moe." in name
    parts = {"down_proj": value} if kind == "down_proj" else dict(zip(("gate_proj", "up_proj"), value.chunk(2, dim=1)))
    short = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"} if is_mixtral else {}
    return {f"{module}.{expert}.{short.get(part, part)}.weight": matrix
            for part, matrices in parts.items() for expert, matrix in enumerate(matrices)}


def write_model(folder, config, rng):
    """config.json and the weights, named and rounded as published models of this family are."""
    model = class_of(config).from_config(
        AutoConfig.for_model(**{key: value for key, value in config.items() if key != "quantization_config"}))
    tensors = {}
    chosen_by = [each for each in model.named_buffers() if each[0].endswith("e_score_correction_bias")]
    for name, parameter in [*model.named_parameters(), *chosen_by]:  # a tied head is listed once, as the embedding
        value = torch.from_numpy(drawn(rng, name, tuple(parameter.shape), config))
        name = name.removeprefix("transformer.")
        if config["model_type"] == "mixtral":
            name = name.replace(".mlp.", ".block_sparse_moe.")
        if config["model_type"] == "granitemoe":
            name = name.replace(".router.weight", ".router.layer.weight")
        value = value.to(DTYPES[config["torch_dtype"]])
        tensors |= {each: part.contiguous() for each, part in published(name, value, config).items()}
    folder.mkdir(parents=True)
    if folder.name in SHARDED:
        write_shards(folder, tensors)
    else:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", config)


def write_shards(folder, tensors):
    names = list(tensors)
    half = len(names) // 2
    where = {}
    for number, part in enumerate((names[:half], names[half:]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        where |= dict.fromkeys(part, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def opened(folder):
    config = json.loads((folder / "config.json").read_text())
    is_coded = "quantization_config" in config
    options = {"quantization_config": Mxfp4Config(dequantize=True)} if is_coded else {}
    model, report = class_of(config).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True, **options)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    return model.eval()


def write_adapter(folder, name, rng):
    model = get_peft_model(opened(folder), LoraConfig(task_type="CAUSAL_LM", **ADAPTERS[name]))
    for key, parameter in model.named_parameters():
        if "lora_" in key:
            spread = 1 / np.sqrt(parameter.shape[1]) if "lora_A" in key else 0.3
            parameter.data = torch.from_numpy((rng.standard_normal(parameter.shape) * spread).astype(np.float32))
    model.save_pretrained(folder / "adapter")
    (folder / "adapter" / "README.md").unlink()
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = name
    config["target_modules"].sort()  # peft keeps a set, which has no order of its own
    write_json(folder / "adapter" / "adapter_config.json", config)


@torch.no_grad()
def computed(model, prompt):
    """The logits of every prompt position, and the greedy continuation; the whole text is run anew for each token."""
    text, margins = list(prompt), []
    logits = model(torch.tensor([text])).logits[0]
    last = logits[-1]
    for _ in range(ANSWER):
        best = last.topk(2).values
        margins.append(float((best[0] - best[1]) / last.abs().max()))
        text.append(int(last.argmax()))
        last = model(torch.tensor([text])).logits[0, -1]
    return logits, text[PROMPT:], min(margins)


def is_lively(greedy):
    """No run, no loop: every stretch of 16 tokens holds several different ones, and the end does not repeat."""
    tail = greedy[-32:]
    loops = any(tail[period:] == tail[:-period] for period in range(1, 17))
    return not loops and all(len(set(greedy[at:at + 16])) >= 6 for at in range(ANSWER - 15))


def attempt(name, seed):
    """Writes the model made from this seed; returns what it computes, or why the seed will not do."""
    folder, config = GOLDEN / name, MODELS[name]
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng([list(MODELS).index(name), seed])
    write_model(folder, config, rng)
    write_adapter(folder, name, rng)
    prompt = rng.integers(0, vocabulary(config), PROMPT).tolist()
    base = opened(folder)
    logits, greedy, margin = computed(base, prompt)
    if margin < MARGIN or not is_lively(greedy):
        return None
    adapted = PeftModel.from_pretrained(base, folder / "adapter").eval()
    adapter_logits, adapter_greedy, adapter_margin = computed(adapted, prompt)
    if adapter_margin < MARGIN or not is_lively(adapter_greedy) or adapter_greedy[:8] == greedy[:8]:
        return None
    return {"prompt": prompt, "logits": logits, "greedy": greedy,
            "adapter_logits": adapter_logits, "adapter_greedy": adapter_greedy}


def name_end_tokens(folder, config, result):
    """Ends with tokens that no greedy text holds, so that a program that honours them runs the full length too."""
    unused = sorted(set(range(vocabulary(config))) - set(result["greedy"]) - set(result["adapter_greedy"]))
    several = folder.name == "llama-tied-llama3"
    write_json(folder / "config.json", config | {"eos_token_id": unused[-2:] if several else unused[-1]})


def make(name):
    for seed in range(10000):
        result = attempt(name, seed)
        if result:
            break
    assert result, f"{name}: no seed will do"
    name_end_tokens(GOLDEN / name, MODELS[name], result)
    tensors = {key: torch.tensor(value, dtype=torch.int32) if isinstance(value, list) else value.contiguous()
               for key, value in result.items()}
    save_file(tensors, GOLDEN / name / "expected.safetensors")
    print(f"{name}: seed {seed}, {len(set(result['greedy']))} different tokens of {ANSWER}")


def write_readme():
    names = ("torch", "transformers", "peft", "safetensors", "numpy")
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    (GOLDEN / "README.md").write_text(f"""# Golden fixtures

Tiny random models as Hugging Face folders, a PEFT adapter for each, and what the reference libraries compute with them
in f32. Made by `scripts/make_golden.py` with
{libraries}.

`expected.safetensors` of each model holds `prompt` [{PROMPT}], `logits` [{PROMPT}, vocab] at every prompt position,
`greedy` [{ANSWER}], and `adapter_logits` and `adapter_greedy`, the same with `adapter/` on. At every greedy step the
best logit leads by more than {MARGIN} of the largest, so the order of a sum cannot change a token; the end tokens in
config.json occur in no greedy text.

| model | weights | what it is there for |
| --- | --- | --- |
| gpt2 | F16 | learned positions, layer norm, Conv1D, fused c_attn; names without `transformer.`, as the original's |
| llama | F32, two shards | grouped queries, separate head |
| llama-tied-llama3 | BF16 | tied head, llama3 rope scaling (all three bands), two end tokens |
| llama-linear | F16 | linear rope scaling under the older key `type`; one kv head |
| mistral | F16 | sliding window of 16; rsLoRA adapter |
| qwen2 | BF16 | biases on q, k and v |
| qwen3 | BF16 | q and k norms, heads * head_dim != hidden; adapter with rank_pattern and alpha_pattern |
| phi3 | BF16 | fused q, k, v and gate, up; three quarters of each head turn, by longrope's long factors; window |
| smollm3 | BF16 | a layer that does not turn its heads; tied head |
| gemma3 | BF16 | norms of outputs, norms that multiply by 1 + weight, gated gelu, embeddings times a factor, a layer with a window and a rope of its own, scores divided by another number |
| qwen3-moe | BF16 | two of six experts for each token, whose shares add up to one; adapter on attention alone |
| mixtral | F16 | three of five experts, names of their own |
| granite | BF16 | factors of embeddings, scores, logits, and of what attention and mlp give |
| olmo2 | BF16 | norms of outputs alone, one norm over all heads of q and one over those of k; sizes that no vector divides |
| olmo3 | BF16 | the same with a layer that has a window and a rope of its own, beside YaRN |
| gemma2 | BF16 | caps of scores and logits that both count; otherwise as gemma3, with one rope and no norms of heads |
| gpt-oss | BF16 | attention sinks, biases everywhere, experts in one tensor with gate and up in turn, an activation whose limit counts, YaRN that is not cut to whole pairs, a layer with a window |
| gpt-oss-mxfp4 | BF16, experts MXFP4 | the same with experts in blocks of 32 codes of four bits |
| olmoe | BF16 | experts beside one norm over all heads of q and one over those of k; shares that add up to less than one |
| granite-moe | BF16 | Granite's factors with experts, which are two tensors |
| granite-hybrid | BF16 | the dense models of Granite 4: gate and up in one tensor, names of their own |
| qwen2-moe | BF16 | an mlp beside the experts, of which each token takes a share; adapter on it |
| glm4-moe | BF16 | experts chosen by sigmoids and biases beside a shared mlp, a layer without experts, half of each head turns, norms of heads |
| ministral3 | BF16 | queries that grow with the position, past the original context of YaRN; tied head |
| glm | BF16 | neighbours of half of each head turn; gate and up in one tensor; biases on q, k and v |
| glm4 | BF16 | the same with norms of outputs beside those of inputs, under names of its own; heads of another size |
| qwen3-vl-moe | BF16 | of a model that sees pictures: experts in one tensor, [in, out], gate before up |
| cohere | F16 | layer norms without biases, an mlp beside attention, neighbours turn, biases on attention; tied head, logits times a factor |
| cohere2 | BF16 | the same with a layer that has a window, and one that sees all and does not turn its heads |
| qwen3.5 | BF16 | linear attention with more value heads than key heads, attention with gates of heads, half of which turn; of a model that sees pictures; tied head |
| qwen3.5-moe | BF16 | the same with experts in two tensors beside a shared mlp; as many key heads as value heads |
| qwen3-next | BF16 | the parts of a key head's projections together, a convolution of three rows |
| ernie | BF16 | neighbours of whole heads turn; biases everywhere; tied head |
| qwen3-yarn | BF16 | YaRN (all three bands, longer cosines and sines), past the original context |
""")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    for model_name in sys.argv[1:] or MODELS:
        make(model_name)
    write_readme()
