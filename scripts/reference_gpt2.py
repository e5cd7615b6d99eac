#!/usr/bin/env python3
"""Compute a GPT-2's reference losses with an implementation that shares no code with this course.

The model is Hugging Face's GPT2LMHeadModel with eager attention, in float32, on the CPU; the
log-sum-exp over the vocabulary is taken in float64. Needs torch, transformers and safetensors.
The course never runs it: it made chapters/07_gpt2_124m/tiny_gpt/reference.json, once, by

    python3 scripts/reference_gpt2.py chapters/07_gpt2_124m/tiny_gpt sample.txt \
        --prompt "In the first year, the young man" --generate 68
"""
import hashlib
import json
import pathlib
import re
import struct

import torch
import transformers

from flags import Flags

SHARD_MAGIC = 20240520


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_tokens(path):
    """An llm.c shard, or the bytes of a file as tokens 0 to 255."""
    raw = path.read_bytes()
    if len(raw) >= 1024 and struct.unpack_from("<i", raw)[0] == SHARD_MAGIC:
        count = struct.unpack_from("<i", raw, 8)[0]
        return torch.tensor(struct.unpack_from(f"<{count}H", raw, 1024))
    return torch.tensor(list(raw))


def sequence_losses(model, tokens, context):
    """Mean loss and number of targets of each sequence, the shorter last one included."""
    losses = []
    for start in range(0, len(tokens) - 1, context):
        inputs = tokens[start : min(start + context, len(tokens) - 1)]
        targets = tokens[start + 1 : start + 1 + len(inputs)]
        logits = model(inputs[None]).logits[0].double()
        loss = torch.logsumexp(logits, -1) - logits.gather(-1, targets[:, None])[:, 0]
        losses.append((loss.mean().item(), len(targets)))
    return losses


def weighted_mean(losses):
    return sum(loss * count for loss, count in losses) / sum(count for _, count in losses)


def greedy(model, prompt, count):
    tokens = list(prompt)
    for _ in range(count):  # no cache: the whole text goes through the network for each token
        tokens.append(model(torch.tensor([tokens])).logits[0, -1].argmax().item())
    return tokens[len(prompt) :]


def main():
    parser = Flags(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path, help="folder with config.json and model.safetensors")
    parser.add_argument("tokens", help="file in that folder: a shard, or bytes")
    parser.add_argument("--prompt", help="text to continue, for a model whose tokens are bytes")
    parser.add_argument("--generate", type=int, default=64, help="tokens to continue it by")
    arguments = parser.parse_args()
    tokens_file = arguments.model / arguments.tokens
    tokens = read_tokens(tokens_file)

    def load(dtype):
        return transformers.GPT2LMHeadModel.from_pretrained(
            arguments.model, dtype=dtype, attn_implementation="eager"
        ).eval()

    with torch.no_grad():
        model = load(torch.float32)
        context = model.config.n_positions
        losses = sequence_losses(model, tokens, context)
        reference = {
            "implementation": f"transformers {transformers.__version__} GPT2LMHeadModel, eager attention, "
            f"PyTorch {torch.__version__.split('+')[0]}, float32, CPU",
            "made_by": "scripts/reference_gpt2.py",
            "model_sha256": sha256(arguments.model / "model.safetensors"),
            "tokens_file": arguments.tokens,
            "tokens_sha256": sha256(tokens_file),
            "context": context,
            "targets": sum(count for _, count in losses),
            "loss": {
                "f32_eager": weighted_mean(losses),
                "bf16_eager": weighted_mean(sequence_losses(load(torch.bfloat16), tokens, context)),
            },
            "per_sequence_loss_f32": [loss for loss, _ in losses],
        }
        if arguments.prompt is not None:
            new = greedy(model, arguments.prompt.encode(), arguments.generate)
            reference["greedy_f32"] = {
                "prompt": arguments.prompt,
                "new_tokens": new,
                "text": arguments.prompt + bytes(new).decode(errors="replace"),
            }
    text = json.dumps(reference, indent=1)
    # Token ids on one line, not on one each.
    text = re.sub(r"(?<=[\[0-9,])\s+(?=[0-9]+[,\s])", " ", text).replace("[ ", "[")
    (arguments.model / "reference.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
