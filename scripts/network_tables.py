"""Tables of chapter 7's results of GPT-2, for result_tables.py. Each view takes documents and words, and gives
headers and rows."""
import statistics


def timed(document, dtype=None):
    """The rows of implementations that ran."""
    rows = [row for row in document["rows"] if row.get("status", "ok") == "ok" and dtype in (None, row["dtype"])]
    if not rows:
        raise ValueError(f"no implementation ran with activations in {dtype}")
    return rows


def network(documents, dtype):
    """Against the first row: how much faster attention is, the whole by Amdahl's law, and the whole."""
    rows = timed(documents[0], dtype)
    base = rows[0]
    cells = []
    for row in rows:
        faster = base["attention_seconds"] / row["attention_seconds"]
        amdahl = base["seconds"] / (base["seconds"] - base["attention_seconds"] + row["attention_seconds"])
        cells.append([f"`{row['implementation']}`", f"{row['loss']:.6f}", f"{row['tokens_per_s']:,.0f}",
                      f"{1e3 * row['seconds']:.0f}", f"{1e3 * row['attention_seconds']:.1f}",
                      f"{100 * row['attention_share']:.1f} %", f"{faster:.2f}", f"{amdahl:.2f}",
                      f"{base['seconds'] / row['seconds']:.2f}"])
    return ["attention", "loss", "tokens/s", "ms", "in attention, ms", "share", "attention faster by",
            "whole by Amdahl", "whole"], cells


def losses(documents):
    rows = [row for document in documents for row in timed(document)]
    types = list(dict.fromkeys(row["dtype"] for row in rows))
    found = {(row["implementation"], row["dtype"]): f"{row['loss']:.6f}" for row in rows}
    return ["attention", *types], [[f"`{name}`", *(found.get((name, dtype), "") for dtype in types)]
                                   for name in dict.fromkeys(row["implementation"] for row in rows)]


def calls(documents, length):
    """Means within the network, of documents[0], beside the medians of a benchmark at the same shape."""
    model = documents[0]["model"]
    cells = []
    for row in timed(documents[0], "bf16"):
        count = model["layers"] * row["tokens"] / (row["context"] * row["batch"])
        alone = [other for other in documents[1]["rows"] if other.get("cache") == "cold"
                 and (other["implementation"], other["set"], other["len_q"]) ==
                 (row["implementation"], "causal", int(length))]
        if len(alone) != 1 or row["context"] != int(length) or alone[0]["batch"] != row["batch"]:
            raise ValueError(f"{row['implementation']}: {len(alone)} timed rows of the network's shape")
        within, alone = 1e6 * row["attention_seconds"] / count, 1e3 * alone[0]["median_ms"]
        cells.append([f"`{row['implementation']}`", f"{alone:.1f}", f"{within:.1f}", f"{within / alone:.2f}"])
    return ["attention", "alone, µs", "in the network, µs", "over the first"], cells


def outside(documents):
    """documents: the network's results, and a benchmark's for the rate of products on the same card."""
    model, ceilings = documents[0]["model"], {c["dtype"]: c["flops_per_s"] for c in documents[1]["ceilings"]}
    # Two operations a weight of the linear layers: 3 + 1 + 4 + 4 matrices of width² in each layer, and the logits.
    weights = 12 * model["layers"] * model["width"] ** 2 + model["vocabulary"] * model["width"]
    cells = []
    for dtype in dict.fromkeys(row["dtype"] for row in timed(documents[0])):
        rows = timed(documents[0], dtype)
        flops = 2 * weights * rows[0]["tokens"]
        predicted = flops / ceilings[dtype]
        measured = statistics.median(row["seconds"] - row["attention_seconds"] for row in rows)
        cells.append([dtype, f"{flops * 1e-12:.1f}", f"{ceilings[dtype] * 1e-12:.1f}", f"{1e3 * predicted:.1f}",
                      f"{1e3 * measured:.1f}", f"{100 * predicted / measured:.0f} %"])
    return ["activations", "products, TFLOP", "at TFLOP/s", "predicted, ms", "measured, ms", "share of the bound"], cells


def throughput(documents):
    return ["PyTorch", "activations", "tokens/s"], [
        [item["way"].replace("scaled_dot_product_attention", "`scaled_dot_product_attention`")
         .replace("torch.compile", "`torch.compile`"), item["dtype"], f"{item['tokens_per_s']:,.0f}"]
        for document in documents for item in document["throughput"]]


VIEWS = {"network": network, "network_losses": losses, "network_calls": calls, "network_outside": outside,
         "network_throughput": throughput}
