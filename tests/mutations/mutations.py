"""The list of deliberate faults, each a real one of somebody's attention.

`original` must stand exactly once in `file`; mutate.py puts `replacement` in its place. The unit is the
source file that is compiled with it (the mutated file itself, unless that is a header), and the
implementation is the one whose entry the mutant replaces.
"""

from dataclasses import dataclass

NAIVE = ("chapters/01_memory_accounting/naive_attention.cpp", "cpu_naive")
BLOCKED = ("chapters/03_blocked_attention/blocked_attention.cpp", "cpu_blocked")
KV_OUTER = ("chapters/03_blocked_attention/blocked_attention.cpp", "cpu_blocked_kv_outer")
FAST = ("chapters/03_blocked_attention/fast_attention.cpp", "cpu_fast")
TILED = ("chapters/04_cuda_tiled/executor_attention.cpp", "executor_tiled")
REGISTER_TILED = ("chapters/04_cuda_tiled/executor_attention.cpp", "executor_register_tiled")
FAST_EXP2 = ("chapters/05_exp2/fast_exp2_attention.cpp", "cpu_fast_exp2")
EXP2 = ("chapters/05_exp2/exp2_attention.cpp", "executor_exp2")
TENSOR_CORES = ("chapters/08_tensor_cores/executor_tensor_cores.cpp", "executor_tensor_cores")
HOPPER = ("chapters/09_hopper/executor_hopper.cpp", "executor_hopper")

DOOR = "common/attention.h"
TENSOR = "common/tensor.h"
TILES = "chapters/03_blocked_attention/tiles.h"
SIMD = "chapters/03_blocked_attention/simd.h"
KERNEL = "chapters/03_blocked_attention/fast_kernel.h"
REGISTERS = "chapters/03_blocked_attention/register_tiles.h"
ARGUMENTS = "chapters/04_cuda_tiled/arguments.h"
LOAD_TILE = "chapters/04_cuda_tiled/load_tile.h"
TILED_KERNEL = "chapters/04_cuda_tiled/tiled_kernel.h"
REGISTER_TILED_KERNEL = "chapters/04_cuda_tiled/register_tiled_kernel.h"
FOLDED_SCALE = "chapters/05_exp2/folded_scale.h"
EXP2_KERNEL = "chapters/05_exp2/exp2_kernel.h"
TENSOR_CORE_KERNEL = "chapters/08_tensor_cores/tensor_core_kernel.h"
HOPPER_ARGUMENTS = "chapters/09_hopper/arguments.h"
HOPPER_KERNEL = "chapters/09_hopper/hopper_kernel.h"
HOPPER_MEMORY = "chapters/09_hopper/hopper_memory.h"
SHORT_HOPPER_KERNEL = "chapters/09_hopper/short_kernel.h"
STORE_TILE = "chapters/09_hopper/store_tile.h"
TILE_WORK = "chapters/09_hopper/tile_work.h"


@dataclass(frozen=True)
class Mutation:
    name: str  # unique; a test is called after it
    stands_for: str  # the fault, for the table on the page
    unit: str
    implementation: str
    file: str
    original: str
    replacement: str


def mutation(name, of, stands_for, original, replacement, file=None):
    unit, implementation = of
    return Mutation(name, stands_for, unit, implementation, file or unit, original, replacement)


def everywhere(name, stands_for, original, replacement, file):
    """A fault in a header that all share, tried on each of them."""
    return [
        mutation(f"{name}_{of[1].removeprefix('cpu_')}", of, stands_for, original, replacement, file)
        for of in (NAIVE, BLOCKED, FAST)
    ]


MASK = "const std::int64_t n = i + 1 + len_kv - len_q;"

MUTATIONS = [
    # The mask
    *everywhere(
        "mask_one_key_too_many",
        "causal mask off by one: a query sees the key after its own",
        MASK,
        "const std::int64_t n = i + 2 + len_kv - len_q;",
        DOOR,
    ),
    *everywhere(
        "mask_one_key_too_few",
        "causal mask off by one: a query does not see its own key",
        MASK,
        "const std::int64_t n = i + len_kv - len_q;",
        DOOR,
    ),
    *everywhere(
        "mask_aligned_top_left",
        "causal mask aligned top-left: right only where len_q = len_kv",
        MASK,
        "const std::int64_t n = i + 1;",
        DOOR,
    ),
    mutation(
        "mask_forgotten_on_diagonal",
        BLOCKED,
        "tiles on the diagonal treated like full ones",
        "return std::clamp<std::int64_t>(p.visible_keys(i) - kv.first, 0, kv.rows);",
        "return static_cast<void>(p), static_cast<void>(i), kv.rows;",
        TILES,
    ),
    mutation(
        "bound_from_first_row",
        BLOCKED,
        "the last tile is chosen by the first query of the block, not the last",
        "if (kv.first >= p.visible_keys(q.first + q.rows - 1)) return TileKind::skipped;",
        "if (kv.first >= p.visible_keys(q.first)) return TileKind::skipped;",
        TILES,
    ),
    mutation(
        "bound_from_first_row_fast",
        FAST,
        "the loop over keys ends where the first query of the block stops seeing",
        "const std::int64_t keys = p_.visible_keys(first_q + rows - 1);",
        "const std::int64_t keys = p_.visible_keys(first_q);",
        KERNEL,
    ),
    mutation(
        "mask_includes_next_key_fast",
        FAST,
        "mask compares with >= instead of >",
        "if (MASKED) sum[j][FIRST] = limit > j ?",
        "if (MASKED) sum[j][FIRST] = limit >= j ?",
        REGISTERS,
    ),
    mutation(
        "mask_forgotten_naive",
        NAIVE,
        "the softmax runs over the whole row",
        "s + i * len_kv, p + i * len_kv, problem.visible_keys(block.first + i), scratch.scores);",
        "s + i * len_kv, p + i * len_kv, len_kv, scratch.scores);",
    ),
    # The tiles
    mutation(
        "last_tile_skipped",
        BLOCKED,
        "block count rounded down: the last, partial tile is never read",
        "for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {\n"
        "        if (tiles.kind(q_block, n)",
        "for (std::int64_t n = 0; n < p.len_kv / sizes.kv; ++n) {\n"
        "        if (tiles.kind(q_block, n)",
    ),
    mutation(
        "key_tail_not_masked",
        FAST,
        "len_kv rounded up to the tile: keys past the last one are seen",
        "if (!causal) return len_kv;",
        "if (!causal) return (len_kv + 63) / 64 * 64;",
        DOOR,
    ),
    mutation(
        "key_tail_read",
        FAST,
        "the last block is read as if it were full, though nothing of the excess is used",
        "const std::int64_t count = std::min<std::int64_t>(BLOCK_KV, keys - first);",
        "const std::int64_t count = BLOCK_KV;",
        KERNEL,
    ),
    mutation(
        "query_tail_written",
        FAST,
        "the last block of queries is stored as full: writes past len_q",
        "for (std::int64_t i = 0; i < rows; ++i) {\n            T* row = o.row(b, h, first_q + i);",
        "for (std::int64_t i = 0; i < BLOCK_Q; ++i) {\n            T* row = o.row(b, h, first_q + i);",
        KERNEL,
    ),
    mutation(
        "some_channels_forgotten",
        FAST,
        "a remainder of the channels is left out: right only where the head dimension divides",
        "        case 4: body.template operator()<4>(first); break;\n",
        "",
        REGISTERS,
    ),
    mutation(
        "channels_beyond_256_forgotten",
        FAST,
        "a head dimension that is accepted but only partly computed",
        "weighted_sum(scratch_.s_t, v, p_.head_dim, visible, correction, scratch_.o_t);",
        "weighted_sum(scratch_.s_t, v, std::min<std::int64_t>(p_.head_dim, 256), visible, correction,\n"
        "                     scratch_.o_t);",
        KERNEL,
    ),
    # The online softmax
    mutation(
        "o_not_rescaled",
        BLOCKED,
        "O keeps its old scale when the maximum moves",
        "        q.o.row(i) *= correction;",
        "",
        TILES,
    ),
    mutation(
        "o_not_rescaled_fast",
        FAST,
        "O keeps its old scale when the maximum moves",
        "sum[c][r] = simd::load(o_t + c * BLOCK_Q + r * LANES) * correction[r];",
        "sum[c][r] = simd::load(o_t + c * BLOCK_Q + r * LANES);",
        REGISTERS,
    ),
    mutation(
        "l_not_rescaled",
        BLOCKED,
        "l keeps its old scale when the maximum moves",
        "        q.l[i] *= correction;\n",
        "",
        TILES,
    ),
    mutation(
        "l_not_rescaled_fast",
        FAST,
        "l keeps its old scale when the maximum moves",
        "state.l[r] = state.l[r] * correction[r] + sum;",
        "state.l[r] = state.l[r] + sum;",
        REGISTERS,
    ),
    mutation(
        "maximum_of_tile",
        BLOCKED,
        "the maximum of the tile instead of the running one: right until exp overflows",
        "const float m_new = larger_maximum(row, q.m[i]);",
        "const float m_new = larger_maximum(row, MINUS_INFINITY);",
        TILES,
    ),
    mutation(
        "maximum_of_tile_fast",
        FAST,
        "the maximum of the tile instead of the running one",
        "const Floats m_new = simd::larger(block_maximum[r], state.m[r]);",
        "const Floats m_new = block_maximum[r];",
        REGISTERS,
    ),
    mutation(
        "maximum_without_diagonal",
        FAST,
        "the maximum leaves out the keys on the diagonal",
        "            maximum[r] = simd::larger(sum[j][r], maximum[r]);",
        "            if (!MASKED) maximum[r] = simd::larger(sum[j][r], maximum[r]);",
        REGISTERS,
    ),
    mutation(
        "maximum_not_subtracted",
        NAIVE,
        "softmax without the maximum: overflows",
        "const float shift = max == MINUS_INFINITY ? 0.0f : max;",
        "const float shift = max == MINUS_INFINITY ? 0.0f : 0.0f;",
    ),
    mutation(
        "finite_initial_maximum",
        BLOCKED,
        "the running maximum starts at -10000 instead of minus infinity",
        "tile.m.setConstant(MINUS_INFINITY);",
        "tile.m.setConstant(-1e4f);",
        TILES,
    ),
    mutation(
        "infinity_minus_infinity",
        BLOCKED,
        "nothing above minus infinity so far, and exp(-inf - (-inf)) is NaN",
        "const float shift = m_new == MINUS_INFINITY ? 0.0f : m_new;",
        "const float shift = m_new;",
        TILES,
    ),
    mutation(
        "exp_of_minus_infinity_not_zero",
        BLOCKED,
        "an exp that makes 4e-39 of exp(-inf), as Eigen's does on some vector units",
        "e[i] = e[i] < std::numeric_limits<float>::min() ? 0.0f : e[i];",
        "e[i] = e[i] < std::numeric_limits<float>::min() ? 4e-39f : e[i];",
        TILES,
    ),
    mutation(
        "exp_drops_nan",
        FAST,
        "a comparison that NaN fails turns it into the weight 0",
        "const Floats clamped = LOWEST > x ? broadcast(LOWEST) : x;\n    const Floats biased = clamped * LOG2_E",
        "const Floats clamped = x > LOWEST ? x : broadcast(LOWEST);\n    const Floats biased = clamped * LOG2_E",
        SIMD,
    ),
    mutation(
        "masked_value_times_zero",
        FAST,
        "V of a masked key is multiplied by the weight 0, and 0 times NaN is NaN",
        "sum[c][FIRST] = sees ? sum[c][FIRST] + p * value : sum[c][FIRST];",
        "sum[c][FIRST] = sum[c][FIRST] + p * value;",
        REGISTERS,
    ),
    # Numerator, denominator, LSE
    mutation(
        "not_divided",
        NAIVE,
        "weights are not divided by their sum",
        "    p /= sum;\n",
        "",
    ),
    mutation(
        "no_guard_for_empty_rows",
        BLOCKED,
        "0/0 in rows that see no key",
        "row[c] = static_cast<T>(l == 0.0f ? 0.0f : tile.o(i, c) / l);",
        "row[c] = static_cast<T>(tile.o(i, c) / l);",
        TILES,
    ),
    mutation(
        "no_guard_for_empty_rows_naive",
        NAIVE,
        "0·NaN in rows all of whose scores are minus infinity",
        "        if (row_lse == MINUS_INFINITY) o.row(i).setZero();\n",
        "",
    ),
    mutation(
        "lse_of_empty_rows",
        FAST,
        "LSE of a row without keys is not minus infinity",
        "l == 0.0f ? MINUS_INFINITY : weights_.lse(m, l);",
        "l == 0.0f ? 0.0f : weights_.lse(m, l);",
        KERNEL,
    ),
    mutation(
        "finite_number_for_minus_infinity",
        FAST,
        "the running maximum begins at -1e30",
        "for (Floats& m : state.m) m = simd::broadcast(MINUS_INFINITY);",
        "for (Floats& m : state.m) m = simd::broadcast(-1e30f);",
        KERNEL,
    ),
    mutation(
        "lse_without_maximum",
        BLOCKED,
        "LSE is log l, the maximum forgotten",
        "tile.l[i] == 0.0f ? MINUS_INFINITY : tile.m[i] + std::log(tile.l[i]);",
        "tile.l[i] == 0.0f ? MINUS_INFINITY : std::log(tile.l[i]);",
        TILES,
    ),
    mutation(
        "lse_in_base_2",
        FAST,
        "LSE in base 2, as kernels with exp2 have it inside",
        "float lse(float m, float l) const { return m + std::log(l); }",
        "float lse(float m, float l) const { return (m + std::log(l)) * 1.44269504f; }",
        REGISTERS,
    ),
    mutation(
        "lse_not_written",
        FAST,
        "LSE is left as it was",
        "        if (!t_.lse.data) return;\n",
        "        if (p_.head_dim > 0) return;\n",
        KERNEL,
    ),
    # Scale
    mutation(
        "scale_forgotten",
        BLOCKED,
        "scores are not scaled",
        "        tile.q *= p_.effective_scale();\n",
        "",
        TILES,
    ),
    mutation(
        "scale_of_padded_head_dim",
        FAST,
        "the scale of the head dimension rounded up to 16",
        "weights_(p.effective_scale())",
        "weights_(p.scale ? *p.scale\n"
        "                           : 1.0f / std::sqrt(static_cast<float>((p.head_dim + 15) / 16 * 16)))",
        KERNEL,
    ),
    mutation(
        "scale_zero_means_default",
        FAST,
        "an explicit scale of 0 is taken as not given",
        "weights_(p.effective_scale())",
        "weights_(p.scale && *p.scale != 0.0f ? *p.scale\n"
        "                                                : 1.0f / std::sqrt(static_cast<float>(p.head_dim)))",
        KERNEL,
    ),
    # Kernels of the GPU, run by the executor (chapter 4)
    mutation(
        "kernel_barrier_after_loading",
        TILED,
        "no barrier between the threads that load K and V and those that read them",
        "        __syncthreads();  // K, V and Q are complete\n",
        "",
        TILED_KERNEL,
    ),
    mutation(
        "kernel_barrier_before_loading",
        REGISTER_TILED,
        "no barrier between the threads that read K and V and those that load the next",
        "        __syncthreads();  // nobody reads the last K and V any more (and all have written Q, first)\n",
        "",
        REGISTER_TILED_KERNEL,
    ),
    mutation(
        "kernel_warp_barrier",
        REGISTER_TILED,
        "no barrier between the lanes that write a row of P and those that read it",
        "    warp_barrier();  // a row of P is written and read by the same warp\n",
        "",
        REGISTER_TILED_KERNEL,
    ),
    mutation(
        "kernel_return_before_barrier",
        TILED,
        "threads without a query leave before a barrier",
        "    float O_regs[CHANNELS] = {};\n",
        "    if (row >= rows) return;\n    float O_regs[CHANNELS] = {};\n",
        TILED_KERNEL,
    ),
    mutation(
        "kernel_mask_aligned_top_left",
        REGISTER_TILED,
        "causal mask aligned top-left: right only where len_q = len_kv",
        "const int n = len_kv - len_q + i + 1;",
        "const int n = i + 1;",
        ARGUMENTS,
    ),
    mutation(
        "kernel_tail_not_masked",
        REGISTER_TILED,
        "tiles without a mask are rounded up: the one on the diagonal or at the end is among them",
        "a.visible_keys(at.first_q) / BLOCK_N * BLOCK_N;",
        "(a.visible_keys(at.first_q) + BLOCK_N - 1) / BLOCK_N * BLOCK_N;",
        REGISTER_TILED_KERNEL,
    ),
    mutation(
        "kernel_tail_read",
        TILED,
        "rows after the last are read, though nothing of them is used",
        "if (row < rows && c < head_dim) piece",
        "if (c < head_dim) piece",
        LOAD_TILE,
    ),
    mutation(
        "kernel_tail_written",
        TILED,
        "rows after the last are stored",
        "    if (row >= rows) return;\n",
        "",
        TILED_KERNEL,
    ),
    mutation(
        "kernel_l_not_rescaled",
        TILED,
        "l keeps its old scale when the maximum moves",
        "l = l * correction + sum;",
        "l = l + sum;",
        TILED_KERNEL,
    ),
    # The change of base (chapter 5)
    mutation(
        "exp2_lse_in_base_2",
        FAST_EXP2,
        "LSE is not taken back to the natural logarithm",
        "return (m * scale_.scale_log2 + std::log2(l)) * LN_2;",
        "return m * scale_.scale_log2 + std::log2(l);",
    ),
    mutation(
        "exp2_kernel_lse_in_base_2",
        EXP2,
        "LSE is not taken back to the natural logarithm",
        "(m[i] * scale.scale_log2 + log2f(l[i])) * LN_2",
        "m[i] * scale.scale_log2 + log2f(l[i])",
        EXP2_KERNEL,
    ),
    mutation(
        "exp2_sign_forgotten",
        FAST_EXP2,
        "the constant is abs(scale) log2 e, and the sign is lost",
        "(scale < 0.0f ? -1.0f : 0.0f)",
        "(scale < 0.0f ? 1.0f : 0.0f)",
        FOLDED_SCALE,
    ),
    mutation(
        "exp2_kernel_sign_in_constant",
        EXP2,
        "the sign is in the constant, and the maximum is that of the unscaled scores",
        "const FoldedScale scale(a.scale);",
        "FoldedScale scale(a.scale);\n    if (a.scale < 0) scale.sign = 1, scale.scale_log2 *= -1;",
        EXP2_KERNEL,
    ),
    mutation(
        "exp2_log2_e_twice",
        FAST_EXP2,
        "log2 e is multiplied in twice",
        "(scale < 0.0f ? -scale : scale) * LOG2_E",
        "(scale < 0.0f ? -scale : scale) * LOG2_E * LOG2_E",
        FOLDED_SCALE,
    ),
    mutation(
        "exp2_without_log2_e",
        EXP2,
        "exp2 in place of exp, and nothing else",
        "(scale < 0.0f ? -scale : scale) * LOG2_E",
        "(scale < 0.0f ? -scale : scale)",
        FOLDED_SCALE,
    ),
    mutation(
        "exp2_zero_constant",
        FAST_EXP2,
        "scale 0 makes the constant 0, and 0 times a masked minus infinity is NaN",
        "scale_log2(scale == 0.0f ? 1.0f :",
        "scale_log2(scale == 0.0f ? 0.0f :",
        FOLDED_SCALE,
    ),
    mutation(
        "exp2_infinity_minus_infinity",
        EXP2,
        "nothing above minus infinity so far, and exp2(-inf - (-inf)) is NaN",
        "const float base = m_new == minus_infinity() ? 0.0f : m_new;",
        "const float base = m_new;",
        EXP2_KERNEL,
    ),
    # Heads, strides, offsets
    *everywhere(
        "kv_head_by_remainder",
        "query head h reads head h mod heads_kv",
        "return head_q / (heads_q / heads_kv);",
        "return head_q % heads_kv;",
        DOOR,
    ),
    mutation(
        "v_of_first_head",
        BLOCKED,
        "V is always that of the first head",
        "load(Operand::v, tile.span.first / sizes_.kv, t_.v.as<T>(), b, p_.head_kv(h),",
        "load(Operand::v, tile.span.first / sizes_.kv, t_.v.as<T>(), b, p_.head_kv(h - h),",
        TILES,
    ),
    mutation(
        "token_stride_ignored",
        BLOCKED,
        "rows are taken to lie head_dim elements apart",
        "const T* row = from.row(b, h, first + i);",
        "const T* row = from.row(b, h, 0) + (first + i) * from.shape.dim;",
        TILES,
    ),
    mutation(
        "batch_stride_ignored",
        NAIVE,
        "batches are taken to be dense",
        "return {tensor.row(batch, head, first), count, dim,",
        "return {tensor.data + batch * tensor.shape.heads * tensor.shape.tokens * dim +\n"
        "                    head * tensor.strides.head + first * tensor.strides.token,\n"
        "                count, dim,",
    ),
    mutation(
        "offset_in_32_bits",
        FAST,
        "offsets are computed in 32 bits",
        "return data + batch * strides.batch + head * strides.head + token * strides.token;",
        "return data + static_cast<std::int32_t>(batch * strides.batch + head * strides.head +\n"
        "                                                token * strides.token);",
        TENSOR,
    ),
    mutation(
        "heads_in_16_bits",
        FAST,
        "batch and head together end at 65,535, like two directions of a CUDA grid",
        "const std::int64_t head = unit / blocks;",
        "const std::int64_t head = unit / blocks & 0xffff;",
        KERNEL,
    ),
    # Tensor cores (chapter 8)
    mutation(
        "tensor_swizzle_on_one_side",
        TENSOR_CORES,
        "tiles are written as they are and read as if they were swizzled",
        "return tile + Layout::offset(row + i * ROWS_AT_ONCE, chunk);",
        "return tile + TileLayout<8 * CHUNKS, false>::offset(row + i * ROWS_AT_ONCE, chunk);",
        "chapters/08_tensor_cores/shared_tile.h",
    ),
    mutation(
        "tensor_wait_one_group_late",
        TENSOR_CORES,
        "asynchronous copies are waited for one group too late",
        "        wait_copies<PENDING>();\n        __syncthreads();  // the next tile is here",
        "        wait_copies<PENDING + 1>();\n        __syncthreads();  // the next tile is here",
        TENSOR_CORE_KERNEL,
    ),
    mutation(
        "tensor_mask_one_key_too_many",
        TENSOR_CORES,
        "mask compares with > instead of >=",
        "if (8 * j + 2 * lane.pair + e % 2 >= visible[e / 2])",
        "if (8 * j + 2 * lane.pair + e % 2 > visible[e / 2])",
        "chapters/08_tensor_cores/softmax_rows.h",
    ),
    mutation(
        "tensor_half_corrected",
        TENSOR_CORES,
        "every other column of O misses the correction when a reference moves",
        "                        O[i][j][2 * h + 1] *= correction;\n",
        "",
        "chapters/08_tensor_cores/lazy_rows.h",
    ),
    mutation(
        "tensor_negative_limit",
        TENSOR_CORES,
        "negative scores are compared like integers: those far above a reference go unseen",
        "limit[i][h] = next >= 0.0f ? float_bits(next) : ALWAYS;",
        "limit[i][h] = float_bits(next);",
        "chapters/08_tensor_cores/lazy_rows.h",
    ),
    mutation(
        "tensor_masked_values_multiplied",
        TENSOR_CORES,
        "NaN in V of a masked key is multiplied by the weight 0",
        "if (v - v != 0.0f) chunk[e] = T{};",
        "if (v - v != 0.0f) continue;",
        "chapters/08_tensor_cores/masked_values.h",
    ),
    # Hopper (chapter 9)
    mutation(
        "hopper_diagonal_without_mask",
        HOPPER,
        "the first block of keys with a mask is taken for one without",
        "first_masked = (max(a.visible_keys(min(first, a.len_q - 1)), 1) - 1) / BLOCK_N;",
        "first_masked = (a.visible_keys(min(first, a.len_q - 1)) + BLOCK_N - 1) / BLOCK_N;",
        HOPPER_ARGUMENTS,
    ),
    mutation(
        "hopper_stage_handed_back_early",
        HOPPER,
        "a stage is handed back while the sum still reads its values",
        "                wait_weighted_sum();\n                ring.release();\n            }\n            trace",
        "                ring.release();\n                wait_weighted_sum();\n            }\n            trace",
        TILE_WORK,
    ),
    mutation(
        "hopper_one_warp_for_four",
        HOPPER,
        "one warp hands a stage back for its warpgroup: the others may still read it, or miss a phase",
        "        if (speaks) {\n"
        "            if constexpr (Config::CLUSTER == 1)\n"
        "                arrive(empty + 8 * stage());\n",
        "        if (threadIdx.x % 128 == 0) {\n"
        "            if constexpr (Config::CLUSTER == 1)\n"
        "                for (int warp = 0; warp < 4; ++warp) arrive(empty + 8 * stage());\n",
        HOPPER_MEMORY,
    ),
    mutation(
        "hopper_phase_of_the_next_round",
        HOPPER,
        "the warp that loads waits for the wrong parity of an empty stage",
        "wait_phase(memory.empty + 8 * stage, here.parity ^ 1);",
        "wait_phase(memory.empty + 8 * stage, here.parity);",
        HOPPER_KERNEL,
    ),
    mutation(
        "hopper_values_with_their_keys",
        HOPPER,
        "a stage holds keys and values of the same block, though the sum lags a block behind",
        "load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Config::KV_BYTES, barrier, n + 1);\n    }\n    __device__",
        "load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Config::KV_BYTES, barrier, n);\n    }\n    __device__",
        SHORT_HOPPER_KERNEL,
    ),
    mutation(
        "hopper_store_unpublished",
        HOPPER,
        "O is stored by TMA without a fence after it was written to shared memory",
        "    publish_for_copies();  // to the boxes",
        "    // to the boxes",
        STORE_TILE,
    ),
    mutation(
        "hopper_units_beyond_the_channels",
        HOPPER,
        "O is stored by TMA, in units of 16 bytes, though its channels end within a unit",
        "const bool whole_units = a.head_dim % 8 == 0;",
        "const bool whole_units = true;",
        STORE_TILE,
    ),
    mutation(
        "hopper_corrected_twice",
        HOPPER,
        "a correction of O is applied again to the next block",
        "        moved = false;\n    }\n    // [correct]",
        "    }\n    // [correct]",
        "chapters/09_hopper/row_reference.h",
    ),
    mutation(
        "hopper_masked_nan_kept",
        HOPPER,
        "a row that a masked NaN has spoilt is not computed again",
        "if (query < a.len_q && !right && a.visible_keys(query) > 0) bad |= 1u << h;",
        "if (query < a.len_q && sum[h] == 0.0f && a.visible_keys(query) > 0) bad |= 1u << h;",
        "chapters/09_hopper/finish_rows.h",
    ),
    mutation(
        "hopper_box_of_the_wrong_size",
        HOPPER,
        "the second 64 channels of V are looked for where a shorter box would end",
        "first_values(by_columns(memory.ring + Config::KV_BYTES, box_bytes(Config::BLOCK_N))),",
        "first_values(by_columns(memory.ring + Config::KV_BYTES, box_bytes(Config::BLOCK_N / 2))),",
        HOPPER_MEMORY,
    ),
    mutation(
        "hopper_sign_forgotten",
        HOPPER,
        "a scale below 0 is taken for its magnitude",
        "    if (sign == 1.0f) return;\n    const int thread",
        "    if (sign != 0.0f) return;\n    const int thread",
        "chapters/09_hopper/load_tile.h",
    ),
    # Memory
    mutation(
        "accumulator_not_cleared",
        FAST,
        "O starts from what the workspace held",
        "        std::fill_n(scratch_.o_t, p_.head_dim * BLOCK_Q, 0.0f);\n        State state;",
        "        State state;",
        KERNEL,
    ),
    mutation(
        "m_and_l_not_stored",
        KV_OUTER,
        "K and V outside: l is not carried to the next block of keys",
        "        Column(l_ + q.span.first, q.span.rows) = q.l;\n",
        "",
    ),
    mutation(
        "input_scaled_in_place",
        FAST,
        "Q is scaled where it lies",
        "scratch_.q_t[c * BLOCK_Q + i] = static_cast<float>(row[c]) * factor;",
        "scratch_.q_t[c * BLOCK_Q + i] = static_cast<float>(\n"
        "                    const_cast<T*>(row)[c] = static_cast<T>(static_cast<float>(row[c]) * factor));",
        KERNEL,
    ),
    mutation(
        "workspace_overrun",
        FAST,
        "the workspace is a cache line larger than stated",
        "static_cast<std::size_t>(thread_count(p, launch));",
        "static_cast<std::size_t>(thread_count(p, launch)) - 64;",
        KERNEL,
    ),
    mutation(
        "hidden_scores_on_heap",
        BLOCKED,
        "a T×T matrix after all, on the heap",
        "    QueryTile q = tiles.query_tile(q_block);\n    tiles.load_q(b, h, q);\n    for",
        "    const Matrix hidden = Matrix::Zero(p.len_q, p.len_kv);\n"
        "    QueryTile q = tiles.query_tile(q_block);\n"
        "    tiles.load_q(b, h, q);\n"
        "    q.o *= hidden.size() >= 0 ? 1.0f : 0.0f;\n    for",
    ),
    # Repetition
    mutation(
        "tiles_by_thread_count",
        BLOCKED,
        "the tile depends on the number of threads, and with it the order of the sums",
        "blocked_attention(p, t, ORDER, TileSize{}, workspace, launch.thread_count());",
        "blocked_attention(p, t, ORDER, TileSize{64, launch.thread_count() > 1 ? 32 : 64}, workspace,\n"
        "                      launch.thread_count());",
    ),
    mutation(
        "tiles_by_call",
        BLOCKED,
        "the tile depends on how often the function was called",
        "blocked_attention(p, t, ORDER, TileSize{}, workspace, launch.thread_count());",
        "static int calls = 0;\n"
        "    blocked_attention(p, t, ORDER, TileSize{64, ++calls % 5 == 0 ? 32 : 64}, workspace,\n"
        "                      launch.thread_count());",
    ),
]
