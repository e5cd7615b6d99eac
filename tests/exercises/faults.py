"""Faults in the solutions of exercises, each with the invariant that must name it.

Every one is a piece of a worked solution as a reader might first have it: what stands there, what to put in its
place, and how the name of the invariant begins that breaks first. scripts/exercise.sh --prove tries them all.
"""

# exercise: [(invariant, original, replacement), ...]
FAULTS = {
    "01_grouped_heads": [
        ("12 query heads on 3", "problem.heads_kv * problem.len_kv)", "problem.heads_q * problem.len_kv)"),
        ("one query, as in", "problem.heads_q * problem.len_q)", "problem.heads_q * problem.len_kv)"),
        ("the cache holds K and V",
         "layers * problem.batch * problem.heads_kv",
         "layers * problem.batch * problem.heads_q"),
        ("the cache holds K and V", "layers * problem.batch", "problem.batch + 0 * layers"),
        ("fp32 takes twice",
         "static_cast<double>(size_of(problem.dtype));\n"
         "}\n"
         "\n"
         "}",
         "2;\n"
         "}\n"
         "\n"
         "}"),
    ],
    "01_turning_point": [
        ("at the length found",
         'q_outer_cost(problem, tiles)) == "products"',
         'q_outer_cost(problem, tiles)) != "exponentials"'),
        ("at every shorter length", "++length) {", "length *= 2) {"),
        ("small tiles never get there", "return 0;", "return longest;"),
        ("a memory ten times as fast", "bound_of(ceilings,", "bound_of(longest > 0 ? h200_ceilings() : ceilings,"),
    ],
    "02_lazy_correction": [
        ("the sum is right",
         "state.shift == MINUS_INFINITY ? 0.0f : state.shift",
         "largest == MINUS_INFINITY ? 0.0f : largest"),
        ("scores that rise by less", "largest > state.shift + SLACK", "largest > state.shift"),
        ("a slow rise by 100", "state.sum *= std::exp(state.shift - largest);", ""),
        ("a slow rise by 100", "largest > state.shift + SLACK", "largest > state.shift + 2 * SLACK"),
        ("no weight exceeds e^slack",
         "state.sum *= std::exp(state.shift - largest);",
         "largest = std::fmin(largest, state.shift + 2 * SLACK);\n"
         "        state.sum *= std::exp(state.shift - largest);"),
        ("blocks of -inf change nothing", "state.shift == MINUS_INFINITY ? 0.0f : state.shift", "state.shift"),
        ("scores far below zero", "float largest = MINUS_INFINITY;", "float largest = -100.0f;"),
    ],
    "02_merge_lse": [
        ("the LSE of both", "std::exp(a.lse - largest) + std::exp(b.lse - largest)", "std::exp(a.lse - largest)"),
        ("wherever a row is cut",
         "share_a * a.output[c] + share_b * b.output[c]",
         "0.5f * (a.output[c] + b.output[c])"),
        ("large scores do not overflow",
         "const float largest = std::max(a.lse, b.lse);",
         "const float largest = std::isinf(a.lse) && std::isinf(b.lse) ? a.lse : 0.0f;"),
        ("an empty half", "if (largest ==", "if (std::min(a.lse, b.lse) =="),
        ("two empty halves", "if (largest == -std::numeric_limits<float>::infinity()) return a;", ""),
    ],
    "03_split_keys": [
        ("with one part",
         "std::vector<float> weights(piece.begin(), piece.end());",
         "std::vector<float> weights(piece.size(), 0.0f);"),
        ("there are as many parts", "(p + 1) * scores.size() / parts - first", "scores.size() / parts"),
        ("no part has more than one key",
         "first = p * scores.size() / parts;\n"
         "        const std::size_t count = (p + 1) * scores.size() / parts - first;",
         "first = p * (scores.size() / parts);\n"
         "        const std::size_t count = p + 1 == parts ? scores.size() - first : scores.size() / parts;"),
        ("the result does not depend",
         "merged = merge(merged, state);",
         "for (std::size_t c = 0; c < head_dim; ++c) merged.acc[c] += state.acc[c];\n"
         "        merged.softmax.sum += state.softmax.sum;\n"
         "        merged.softmax.max = state.softmax.max;"),
        ("parts without keys",
         "merged = merge(merged, state);",
         "merged = state.softmax.sum > 0 ? merge(merged, state) : state;"),
    ],
    "03_window": [
        ("no tile with a visible pair",
         "last_key < first_query - window + 1",
         "first_key < first_query - window + 1"),
        ("a tile that is called full",
         "first_key >= last_query - window + 1",
         "first_key >= first_query - window + 1"),
        ("no tile is loaded in vain",
         "first_key > last_query || last_key < first_query - window + 1",
         "first_key > last_query"),
        ("no tile is masked in vain", "first_key >= last_query - window + 1", "first_key > last_query - window + 1"),
    ],
    "04_banks": [
        ("neighbouring words", "wanted[word % BANKS]", "wanted[word / BANKS % BANKS]"),
        ("one word of padding",
         "static_cast<int>(most)",
         "static_cast<int>((words.back() - words.front()) / 64 + 1)"),
        ("lanes that want the same",
         ".insert(word)",
         ".insert(static_cast<std::uint32_t>(wanted[word % BANKS].size()))"),
        ("any access takes",
         "most = std::max(most, bank.size())",
         "most = bank.empty() ? most : most ? std::min(most, bank.size()) : bank.size()"),
    ],
    "04_loop_bounds": [
        ("equal lengths", "(visible_keys(last_q) + block_n - 1) / block_n", "visible_keys(last_q) / block_n"),
        ("equal lengths", "visible_keys(first_q) / block_n", "(visible_keys(first_q) + block_n - 1) / block_n"),
        ("counts are counts", "std::max<std::int64_t>(0, query + 1 + len_kv - len_q)", "query + 1 + len_kv - len_q"),
        ("no visible key is left out",
         "query + 1 + len_kv - len_q",
         "std::min(query + 1, query + 1 + len_kv - len_q)"),
        ("no tile without a mask hides",
         "query + 1 + len_kv - len_q",
         "std::max(query + 1, query + 1 + len_kv - len_q)"),
        ("no tile is loaded in vain", "std::min(first_q + block_m, len_q) - 1", "first_q + block_m - 1"),
        ("no tile is masked in vain",
         "visible_keys(first_q) / block_n",
         "std::max<std::int64_t>(0, visible_keys(first_q) - 1) / block_n"),
    ],
    "05_row_lse": [
        ("equal scores of 0", "std::log2(sum)) * LN_2", "std::log2(sum))"),
        ("one key",
         "(folded.scale_log2 * max + std::log2(sum)) * LN_2",
         "folded.scale_log2 * max + std::log2(sum) * LN_2"),
        ("a row of keys", "std::exp2(folded", "std::exp2(LOG2_E * folded"),
        ("a negative scale",
         "const FoldedScale folded(scale);",
         "struct { float sign, scale_log2; } folded{1, scale * LOG2_E};"),
        ("a negative scale",
         "const FoldedScale folded(scale);",
         "struct { float sign, scale_log2; } folded{1, std::fabs(scale) * LOG2_E};"),
        ("scale 0",
         "const FoldedScale folded(scale);",
         "struct { float sign, scale_log2; } folded{scale < 0 ? -1.0f : 1.0f, FoldedScale(scale).scale_log2};"),
        ("a row without keys",
         "const FoldedScale folded(scale);",
         "struct { float sign, scale_log2; } folded{scale < 0 ? -1.0f : 1.0f, std::fabs(scale) * LOG2_E};"),
    ],
    "05_whole_shift": [
        ("the sum is right", "state.sum *= correction;", ""),
        ("every correction is a power", "std::ceil(score)", "score"),
        ("the shift is at least", "std::ceil(score)", "std::trunc(score)"),
        ("the shift is at least", "std::ceil(score)", "std::floor(score)"),
        ("no weight exceeds 1",
         "state.sum += std::exp2(score - subtracted);",
         "state.sum += std::exp2(score) / std::exp2(subtracted);"),
        ("blocks of -inf", "std::isinf(state.shift) ? 0.0f : state.shift", "state.shift"),
    ],
    "06_bound_share": [
        ("where a machine waits", "problem.flops()", "2 * problem.flops()"),
        ("where a machine waits", "bound / seconds", "bound"),
        ("a causal mask halves", "problem.flops()", "(problem.causal ? 2 : 1) * problem.flops()"),
        ("an exponential is needed", "problem.visible_keys(i)", "problem.causal ? i + 1 : problem.len_kv"),
        ("an exponential is needed", "problem.visible_keys(i)", "problem.len_kv"),
        ("K and V are read once", "qkvo_bytes(problem)", "(problem.causal ? 0.5 : 1) * qkvo_bytes(problem)"),
    ],
    "06_outlier": [
        ("repetitions that agree",
         "repetition.seconds / static_cast<double>(repetition.calls)",
         "repetition.seconds"),
        ("one repetition that was interrupted",
         "return n % 2 == 1",
         "return times.front() > 0 ? times.back() : n % 2 == 1"),
        ("the order in which",
         "std::sort(times.begin(), times.end());",
         "std::sort(times.begin() + 1, times.end());"),
        ("an even number", "n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2", "times[n / 2]"),
        ("a repetition of many calls",
         "    for (const Repetition& repetition : repetitions)\n"
         "        times.push_back(repetition.seconds / static_cast<double>(repetition.calls));\n"
         "    std::sort(times.begin(), times.end());",
         "    std::vector<Repetition> sorted = repetitions;\n"
         "    std::ranges::sort(sorted, {}, &Repetition::seconds);\n"
         "    for (const Repetition& repetition : sorted)\n"
         "        times.push_back(repetition.seconds / static_cast<double>(repetition.calls));"),
        ("a repetition counts once",
         "times.push_back(",
         "for (std::int64_t call = 0; call < repetition.calls; ++call) times.push_back("),
    ],
    "07_mean_loss": [
        ("sequences of one length", "sum / static_cast<double>(targets)", "sum"),
        ("a shorter last sequence", "std::min(context, left)", "context"),
        ("a text shorter than",
         "std::min(context, left)",
         "left < context && sequence_losses.size() > 1 ? left : context"),
        ("the context decides", "left -= length;", "left -= std::max<std::int64_t>(length, 2);"),
    ],
    "07_rare_words": [
        ("a few words", "+ std::log(running.sum)", "+ std::log2(running.sum)"),
        ("a maximum that comes late", "running.sum *=", "if (false) running.sum *="),
        ("rare words count: each",
         "sum += std::exp(logit - running.max);\n"
         "        running.sum += static_cast<double>(sum);",
         "running.sum = static_cast<double>(static_cast<float>(running.sum) + std::exp(logit - running.max));"),
        ("rare words count in the same tile", "PIECE = 16", "PIECE = 512"),
        ("however the vocabulary",
         "running.sum += static_cast<double>(sum);",
         "running.sum = static_cast<double>(static_cast<float>(running.sum) + sum);"),
    ],
    "08_lazy_limit": [
        ("the sum is right", "row.sum *= std::exp2(row.reference - largest);", ""),
        ("a rise by less than", "largest >= row.reference + SLACK", "largest >= row.reference"),
        ("where the limit is not negative", "            row.limit = limit_above(largest);\n", ""),
        ("where the limit is not negative",
         "return next >= 0.0f ? std::bit_cast<int>(next) : ALWAYS;",
         "return ALWAYS;"),
        ("where the limit is not negative",
         "const float next = reference + SLACK;",
         "const float next = reference;"),
        ("a slow rise moves",
         "            row.sum *= std::exp2(row.reference - largest);\n"
         "            row.reference = largest;",
         "            row.sum *= std::exp2(row.reference - scores.front());\n"
         "            row.reference = scores.front();"),
        ("scores far below zero",
         "float largest = std::numeric_limits<float>::lowest();",
         "float largest = -1000.0f;"),
        ("the sum does not overflow", "next >= 0.0f ? std::bit_cast<int>(next) : ALWAYS", "std::bit_cast<int>(next)"),
        ("the sum does not overflow",
         "next >= 0.0f ? std::bit_cast<int>(next) : ALWAYS",
         "std::bit_cast<int>(std::fmax(next, 0.0f))"),
        ("blocks of -inf",
         "float largest = std::numeric_limits<float>::lowest();\n"
         "        for (const float score : scores) largest = std::fmax(largest, score);\n"
         "        if (",
         "float largest = scores.front();\n"
         "        for (const float score : scores) largest = std::fmax(largest, score);\n"
         "        if (row.sum == 0 || "),
    ],
    "08_order_of_sums": [
        ("scores are sums",
         "upper[n], lower[n], upper[n + 1], lower[n + 1]",
         "upper[n], upper[n + 1], lower[n], lower[n + 1]"),
        ("scores are sums", "key[n], key[n + 1]", "key[n / 2], key[n / 2 + 2]"),
        ("scores are sums", "n < 4; n += 2", "n < 2; n += 2"),
        ("each of the 16 keys", "4 * (g / 2) + 2 * half + g % 2", "4 * (g / 2) + 2 * half"),
        ("a lane holds weights", "4 * (g / 2) + 2 * half + g % 2", "8 * half + g"),
        ("outputs are sums", "4 * (g / 2) + 2 * half + g % 2", "2 * g + half"),
        ("outputs are sums", "values[0], values[1]", "values[1], values[0]"),
        ("outputs are sums",
         "pack<T>(left[2], left[3]),\n"
         "                                pack<T>(right[0], right[1])",
         "pack<T>(right[0], right[1]),\n"
         "                                pack<T>(left[2], left[3])"),
        ("in fp16", "pack<T>(left[0], left[1])", "pack<BFloat16>(left[0], left[1])"),
    ],
    "08_swizzle": [
        ("every chunk has a place", "row / (8 / group) % group", "row % 8"),
        ("every chunk has a place", "chunk ^ turn", "chunk | turn"),
        ("128 columns", "row / (8 / group) % group", "row * 8 / chunks % group"),
        ("96 columns", "row / (8 / group) % group", "row % group"),
        ("any number of columns", "std::min(chunks & -chunks, 8)", "(chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 1)"),
        ("the copy of a tile", "chunk ^ turn", "(chunks == 16 ? chunk / 2 + chunk % 2 * 8 : chunk) ^ turn"),
    ],
    "09_own_blocks": [
        ("equal lengths, square", "tile.first_q + w * tile.rows", "tile.first_q + (tile.warpgroups - 1 - w) * tile.rows"),
        ("equal lengths, square", ".skipped = blocks - own", ".skipped = 0"),
        ("no block that a query sees",
         "query + 1 + tile.len_kv - tile.len_q",
         "std::min(query + 1, query + 1 + tile.len_kv - tile.len_q)"),
        ("a warpgroup goes through", "blocks == 0 ? 0 : blocks + 1", "blocks + 1"),
        ("no block that a query sees",
         "(visible(last) + tile.block_n - 1) / tile.block_n",
         "visible(last) / tile.block_n"),
        ("no block is multiplied in vain", "first < tile.len_q ?", "tile.len_q > 0 ?"),
        ("no block without a mask",
         "visible(first)",
         "visible(std::min(first + tile.rows, tile.len_q) - 1)"),
        ("every query that sees",
         "(std::max(visible(first), 1) - 1) / tile.block_n",
         "visible(first) / tile.block_n"),
        ("no block is masked in vain", "own == 0 ? 0 :", "own == 0 || !tile.causal ? 0 :"),
    ],
    "09_ring": [
        ("block i lies",
         "{.stage = i % stages, .parity = static_cast<unsigned>(i / stages) & 1u}",
         "{.stage = i / stages, .parity = static_cast<unsigned>(i / stages) & 1u}"),
        ("a consumer reads", "static_cast<unsigned>(i / stages) & 1u};", "static_cast<unsigned>(i) & 1u};"),
        ("a consumer reads",
         "static_cast<unsigned>(i / stages) & 1u};",
         "(static_cast<unsigned>(i / stages) & 1u) ^ 1u};"),
        ("the producer fills", "& 1u) ^ 1u}", "& 1u)}"),
        ("the producer overwrites", "(static_cast<unsigned>(i / stages) & 1u) ^ 1u", "1u"),
        ("the producer overwrites", "(static_cast<unsigned>(i / stages) & 1u) ^ 1u", "i < stages ? 1u : 0u"),
        ("each phase of `empty`", "return 4 * warpgroups;", "return warpgroups;"),
        ("each phase of `empty`", "return thread % 32 == 0;", "return thread == 0;"),
        ("each phase of `empty`",
         "return 4 * warpgroups;\n"
         "}\n"
         "\n"
         "/// Whether a thread of a consumer arrives at `empty`: one lane of its warp does.\n"
         "inline bool hands_back(int thread) {\n"
         "    return thread % 32 == 0;",
         "return warpgroups;\n"
         "}\n"
         "inline bool hands_back(int thread) {\n"
         "    return thread == 0;"),
    ],
}
