# Sourced by scripts/fuzz: for each fuzz_NAME.cpp, seed_NAME FOLDER writes a few small valid inputs; libFuzzer grows the
# rest. The folder of the repository is the current one.

# A safetensors file: u64 header length, JSON, data.
safetensors() {
  local json=$1 data=$2
  # shellcheck disable=SC2059  # the format is made of the length's bytes
  printf "\\x$(printf %02x ${#json})\\0\\0\\0\\0\\0\\0\\0%s%b" "$json" "$data"
}

seed_safetensors() {
  local to=$1
  safetensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\0\0\0\0\0\0\0\0' > "$to/one"
  safetensors '{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}  ' \
    '\0\0\0\0' > "$to/metadata"
}

seed_gguf() {
  local to=$1
  printf 'GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' > "$to/empty"
  printf 'GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0k\4\0\0\0\7\0\0\0%b%b' \
    '\1\0\0\0\0\0\0\0t\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' '\0\0\0\0\0\0\0\0\0\0\0\0' > "$to/one"
}

seed_adapter_config() {
  local to=$1
  for model in tests/fixtures/golden/*/; do
    cp "$model/adapter/adapter_config.json" "$to/$(basename "$model").json"
  done
}

seed_config() {
  local to=$1
  for model in tests/fixtures/golden/*/; do cp "$model/config.json" "$to/$(basename "$model").json"; done
}

seed_constraint() {  # the first byte is the kind
  local to=$1
  printf '\0' > "$to/object"
  printf '\1{"type":"object","properties":{"a":{"enum":["x",1]},"b":{"type":"array","items":{"type":"integer","minimum":-3},"maxItems":2}},"required":["a"],"additionalProperties":false}' \
    > "$to/schema"
  # shellcheck disable=SC2016  # JSON's own
  printf '\1{"$defs":{"t":{"anyOf":[{"type":"null"},{"type":"string","pattern":"^a+$"},{"type":"array","prefixItems":[{"$ref":"#/$defs/t"}]}]}},"$ref":"#/$defs/t"}' \
    > "$to/recursive"
  printf '\2(a|[b-d]){2,3}\\d+x?' > "$to/expression"
  printf '\3["yes","no"]' > "$to/choice"
  printf '\4root ::= "a" item* # a list\nitem ::= [0-9]+ | "(" root ")"\n' > "$to/grammar"
  printf '\5{"type":"object","properties":{"name":{"const":"f"},"arguments":{"type":"object"}}}' > "$to/calls"
}

seed_frame() {
  local to=$1
  local version zeros='\0\0\0\0\0\0\0'
  version=$(sed -n 's/.*right_version = \([0-9]*\);.*/\1/p' transport/zmq/frame.hpp)
  printf 'TRP1%b' "\x$(printf %02x "$version")\0\3\0\0$zeros\1$zeros\2$zeros\20$zeros\40$zeros" > "$to/header"
  printf %b "\1\0\0\0200?\1$zeros\5\0\0\0\1${zeros}a\1" "\1$zeros\1$zeros\1${zeros}b\1$zeros\7$zeros" \
    "\1\5\0\0\0\1${zeros}c\0" "\2\0\1\0" "\0\1\0" "\0$zeros" > "$to/everything"
  printf %b "\1$zeros\2$zeros\1$zeros\1$zeros\3$zeros\4$zeros\1$zeros\5$zeros\1$zeros" > "$to/greeting"
  printf %b "\1$zeros\2$zeros\3$zeros\4$zeros" > "$to/welcome"
  printf %b "\7$zeros" > "$to/confirmation"
}

seed_tokenizer() {
  local to=$1
  cat > "$to/bpe" << 'END'
{"version":"1.0","added_tokens":[{"id":4,"content":"<s>","special":true,"lstrip":false,"rstrip":false,"normalized":false,"single_word":false}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"post_processor":null,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3},"merges":["a b"]}}
END
  printf '%s\0%s' "$(cat "$to/bpe")" '{"tokenizer_class":"LlamaTokenizer","bos_token":"a","eos_token":{"content":"<s>"},"add_eos_token":true,"added_tokens_decoder":{"6":{"content":"<x>","lstrip":true}},"additional_special_tokens":["ab"]}' \
    > "$to/config"
}

seed_http() {
  local to=$1
  printf '\0{"prompt":"a","n":2,"max_tokens":4,"stop":["x"],"logprobs":2,"seed":1,"stream":true}' > "$to/completion"
  printf '\0{"prompt":[[1,2],[3]],"temperature":0.5,"top_p":0.9,"logit_bias":{"5":-1},"echo":true}' > "$to/tokens"
  printf '\0{"prompt":"ab","echo":true,"logprobs":1,"prompt_logprobs":2,"max_tokens":0}' > "$to/scores"
  printf '\1{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}' \
    > "$to/chat"
  printf '\2{"prompt":"a","return_token_strs":true}' > "$to/tokenize"
  printf '\3{"tokens":[1,2]}' > "$to/detokenize"
  printf '\4{"input":"a"}' > "$to/embeddings"
  printf '\5{"input_file_id":"file-1","endpoint":"/v1/completions","completion_window":"24h"}' > "$to/batch"
  printf '\6--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n{}\r\n--b--\r\n' \
    > "$to/file"
  printf '\10{"system":[{"type":"text","text":"a"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}],"max_tokens":4,"stop_sequences":["x"],"tools":[{"name":"f","input_schema":{}}],"thinking":{"type":"enabled"}}' \
    > "$to/message"
  printf '\12{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"a"}],"tools":[{"type":"function","name":"f","parameters":{}}],"text":{"format":{"type":"json_object"}}}' \
    > "$to/response"
  printf '\13{"inputs":"a","parameters":{"max_new_tokens":4,"details":true,"decoder_input_details":true,"grammar":{"type":"regex","value":"a+"},"truncate":1}}' \
    > "$to/generation"
  printf '\15{"custom_id":"a","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"a"}]}}\n' \
    > "$to/lines"
  printf 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\nGET /metrics HTTP/1.1\r\nhost: x\r\n\r\n' > "$to/pipelined"
  printf 'POST /tokenize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"pro\r\n0\r\n\r\n' > "$to/chunked"
}

seed_chat_template() {
  local to=$1
  echo "{% for m in messages %}{{ m['role'] + ': ' + m.content | trim }}{% if loop.last %}!{% endif %}{% endfor %}" \
    > "$to/loop"
  echo "{%- set ns = namespace(n=0) -%}{%- macro f(x) -%}{{ x[1:] | length }}{%- endmacro -%}{{ f('abc') }}" > "$to/macro"
}
