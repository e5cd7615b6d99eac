#include "tests/suite_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace fa::suite {

std::string_view name_of(Layout layout) {
    switch (layout) {
        case Layout::gaps: return "gaps";
        case Layout::dense: return "dense";
        case Layout::tight: return "tight";
        case Layout::token_major: return "token-major";
        case Layout::packed_qkv: return "packed QKV";
        case Layout::far: return "far apart";
    }
    return "?";
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

namespace {

bool gaps_of_chunks = false;

constexpr std::int64_t MARGIN = 64;       // elements before the first one
constexpr std::int64_t SPARE_ROWS = 128;  // rows after the last one
constexpr std::size_t GUARD_BYTES = 256;  // behind the workspace
constexpr std::byte GUARD{0xa5};
constexpr std::int64_t FAR = (std::int64_t{1} << 31) + 64;  // elements

/// Where a tensor lies within a block, in elements.
struct Plan {
    std::int64_t front = 0;  ///< elements before the first
    std::int64_t size = 0;   ///< elements of the whole block
    Strides strides;
};

/// The least that a token takes, in elements.
std::int64_t row_of(std::int64_t dim, bool chunks) {
    return chunks ? (dim + 7) / 8 * 8 : dim;
}

/// @param chunks the implementation reads no other strides than multiples of eight elements
Plan plan_for(const Shape& s, const RunOptions& options, bool sparse, bool chunks) {
    Plan plan;
    const std::int64_t row = row_of(s.dim, chunks);
    if (sparse) {
        plan.front = MARGIN;
        // The last token, the last head and the last batch each lie beyond 2^31 elements.
        plan.strides = {2 * FAR + 4096, FAR + 2048,
                        row_of(FAR / (s.tokens > 1 ? s.tokens - 1 : 1), chunks)};
    } else if (options.layout == Layout::tight) {
        plan.strides = {s.heads * s.tokens * row, s.tokens * row, row};
        plan.size = s.count() == 0 ? 0 : (s.batch * s.heads * s.tokens - 1) * row + s.dim;
        return plan;
    } else if (options.layout == Layout::token_major || options.layout == Layout::packed_qkv) {
        plan.front = MARGIN;
        plan.strides = {s.tokens * s.heads * row, row, s.heads * row};
    } else if (options.layout == Layout::dense) {
        plan.front = MARGIN;
        plan.strides = {s.heads * s.tokens * row, s.tokens * row, row};
    } else if (chunks || (gaps_of_chunks && s.dim % 8 == 0)) {
        plan.front = MARGIN;
        plan.strides.token = row + 8;
        plan.strides.head = (s.tokens + options.spare_rows) * plan.strides.token + 8;
        plan.strides.batch = s.heads * plan.strides.head + 16;
    } else {
        plan.front = MARGIN;
        plan.strides.token = s.dim + 3;
        plan.strides.head = (s.tokens + options.spare_rows) * plan.strides.token + 1;
        plan.strides.batch = s.heads * plan.strides.head + 11;
    }
    const auto reach = [](std::int64_t extent, std::int64_t stride) {
        return extent > 0 ? (extent - 1) * stride : 0;
    };
    plan.size = plan.front + reach(s.batch, plan.strides.batch) +
                reach(s.heads, plan.strides.head) + reach(s.tokens, plan.strides.token) + s.dim +
                SPARE_ROWS * s.dim;
    return plan;
}

template <class T>
T from_bits(std::uint32_t fp32, std::uint16_t bf16, std::uint16_t fp16) {
    if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<float>(fp32);
    else
        return std::bit_cast<T>(std::is_same_v<T, BFloat16> ? bf16 : fp16);
}
template <class T>
T nan_of() {
    return from_bits<T>(0x7fc0beefu, 0x7fc5, 0x7e05);
}
template <class T>
T number_of() {  // far from any result, finite: about 1e9, and 10,000 in fp16
    return from_bits<T>(0x4e9184e7u, 0x4e91, 0x70e2);
}

/// A view of the T elements at `place`.
template <class T>
View<T> view_at(const Place& place, const Shape& shape, const Strides& strides) {
    return {reinterpret_cast<T*>(place.address()), shape, strides};
}

template <class T, class Function>
void for_each_row(const View<T>& view, Function&& function) {
    const Shape& s = view.shape;
    std::int64_t row = 0;
    for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t h = 0; h < s.heads; ++h)
            for (std::int64_t t = 0; t < s.tokens; ++t) function(row++, view.row(b, h, t));
}

/// The observed run, for one element type.
template <class T>
class Observed {
  public:
    /// @param chunks the implementation reads no other strides than multiples of eight elements
    Observed(const AttentionProblem& problem, const Inputs& inputs, const RunOptions& options,
             bool chunks)
        : p_(problem), options_(options), sparse_(options.layout == Layout::far), chunks_(chunks) {
        if (options.layout == Layout::packed_qkv)
            place_packed();
        else {
            placed_.q = place(p_.q_shape(), placed_.q_strides);
            placed_.k = place(p_.kv_shape(), placed_.k_strides);
            placed_.v = place(p_.kv_shape(), placed_.v_strides);
        }
        if (options.broadcast_kv) placed_.k_strides.batch = placed_.v_strides.batch = 0;
        input_blocks_ = blocks_.size();
        placed_.o = place(p_.q_shape(), placed_.o_strides);
        if (!sparse_) {
            for (std::size_t i = 0; i < input_blocks_; ++i) fill<T>(*blocks_[i], nan_of<T>());
            fill<T>(*placed_.o.block, options.fill == Fill::nan ? nan_of<T>() : number_of<T>());
        }
        write(inputs.q, placed_.q, p_.q_shape(), placed_.q_strides);
        write(inputs.k, placed_.k, p_.kv_shape(), placed_.k_strides);
        write(inputs.v, placed_.v, p_.kv_shape(), placed_.v_strides);
        if (options.want_lse) place_lse();
        if (!sparse_)
            for (const auto& block : blocks_)
                before_.emplace_back(block->bytes().begin(), block->bytes().end());
    }

    Run run(const Implementation& implementation) {
        Launch launch;
        launch.threads = options_.threads;
        const std::size_t needed = implementation.workspace_bytes(p_, launch);
        // A tight workspace ends where it ends; otherwise a guard shows who writes past it.
        const std::size_t guard = options_.layout == Layout::tight ? 0 : GUARD_BYTES;
        MemoryBlock workspace(needed + guard);
        const auto bytes = workspace.bytes();
        // 0xff: NaN as float, −1 as integer. 0x4e: 8.7e8 as float.
        std::fill_n(bytes.begin(), needed,
                    options_.fill == Fill::nan ? std::byte{0xff} : std::byte{0x4e});
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(needed), bytes.end(), GUARD);

        Run result;
        result.held_beside =
            run_where_it_lives(implementation, p_, placed_, workspace, needed, launch);
        collect(result);
        for (std::size_t i = needed; i < bytes.size(); ++i)
            if (bytes[i] != GUARD) {
                result.faults.push_back(
                    fmt::format("wrote {} bytes past its workspace of {}", i - needed, needed));
                break;
            }
        if (!sparse_) look_for_stray_writes(result);
        return result;
    }

  private:
    Place place(const Shape& shape, Strides& strides) {
        const Plan plan = plan_for(shape, options_, sparse_, chunks_);
        strides = plan.strides;
        add_block(idx(plan.size));
        return {blocks_.back().get(), idx(plan.front) * sizeof(T)};
    }

    void place_packed() {
        if (p_.len_q != p_.len_kv)
            throw std::logic_error("packed QKV needs as many queries as keys");
        const Shape all{p_.batch, p_.heads_q + 2 * p_.heads_kv, p_.len_q, p_.head_dim};
        Strides strides;
        placed_.q = place(all, strides);
        const std::int64_t row = row_of(p_.head_dim, chunks_);
        placed_.k = {placed_.q.block, placed_.q.offset + idx(p_.heads_q * row) * sizeof(T)};
        placed_.v = {placed_.q.block, placed_.k.offset + idx(p_.heads_kv * row) * sizeof(T)};
        placed_.q_strides = placed_.k_strides = placed_.v_strides = strides;
    }

    void place_lse() {
        placed_.lse_stride_head = sparse_ ? FAR : p_.len_q + 2;
        placed_.lse_stride_batch = p_.heads_q * placed_.lse_stride_head + 3;
        const std::int64_t size = p_.batch * placed_.lse_stride_batch + 2 * MARGIN;
        if (sparse_)
            blocks_.push_back(
                std::make_unique<MemoryBlock>(MemoryBlock::sparse(idx(size) * sizeof(float))));
        else
            blocks_.push_back(std::make_unique<MemoryBlock>(idx(size) * sizeof(float), 4));
        if (!sparse_)
            fill<float>(*blocks_.back(),
                        options_.fill == Fill::nan ? nan_of<float>() : number_of<float>());
        placed_.lse = {blocks_.back().get(), idx(MARGIN) * sizeof(float)};
    }

    void add_block(std::size_t elements) {
        blocks_.push_back(
            sparse_
                ? std::make_unique<MemoryBlock>(MemoryBlock::sparse(elements * sizeof(T)))
                : std::make_unique<MemoryBlock>(
                      elements * sizeof(T), chunks_ ? options_.phase / 16 * 16 : options_.phase));
    }

    template <class E>
    static void fill(MemoryBlock& block, E value) {
        const auto bytes = block.bytes();
        std::fill_n(reinterpret_cast<E*>(bytes.data()), bytes.size() / sizeof(E), value);
    }

    void write(const std::vector<float>& from, const Place& to, const Shape& shape,
               const Strides& strides) {
        for_each_row(view_at<T>(to, shape, strides), [&](std::int64_t row, T* elements) {
            const float* source = from.data() + row * shape.dim;
            for (std::int64_t c = 0; c < shape.dim; ++c) elements[c] = static_cast<T>(source[c]);
        });
    }

    float* lse_row(std::int64_t b, std::int64_t h) const {
        return reinterpret_cast<float*>(placed_.lse.address()) + b * placed_.lse_stride_batch +
               h * placed_.lse_stride_head;
    }

    void collect(Run& result) const {
        const Shape s = p_.q_shape();
        result.o.resize(idx(s.count()));
        for_each_row(view_at<T>(placed_.o, s, placed_.o_strides),
                     [&](std::int64_t row, const T* elements) {
                         for (std::int64_t c = 0; c < s.dim; ++c)
                             result.o[idx(row * s.dim + c)] = static_cast<float>(elements[c]);
                     });
        if (!options_.want_lse) return;
        for (std::int64_t b = 0; b < s.batch; ++b)
            for (std::int64_t h = 0; h < s.heads; ++h)
                result.lse.insert(result.lse.end(), lse_row(b, h), lse_row(b, h) + s.tokens);
    }

    /// Compares every block with what it held before, the elements of O and LSE excepted.
    void look_for_stray_writes(Run& result) {
        const Shape s = p_.q_shape();
        for (std::size_t n = 0; n < blocks_.size(); ++n) {
            const auto now = blocks_[n]->bytes();
            std::vector<std::byte>& then = before_[n];
            const auto forgive = [&](const void* start, std::size_t size) {
                const auto offset = static_cast<const std::byte*>(start) - now.data();
                std::memcpy(then.data() + offset, start, size);
            };
            std::string_view name = n < input_blocks_ ? "an input" : "LSE";
            if (blocks_[n].get() == placed_.o.block) {
                name = "O";
                for_each_row(
                    view_at<T>(placed_.o, s, placed_.o_strides),
                    [&](std::int64_t, const T* row) { forgive(row, idx(s.dim) * sizeof(T)); });
            } else if (blocks_[n].get() == placed_.lse.block) {
                for (std::int64_t b = 0; b < s.batch; ++b)
                    for (std::int64_t h = 0; h < s.heads; ++h)
                        forgive(lse_row(b, h), idx(s.tokens) * sizeof(float));
            }
            for (std::size_t i = 0; i < now.size(); ++i)
                if (now[i] != then[i]) {
                    result.faults.push_back(
                        fmt::format("wrote into the memory of {} where it must not, byte {} of {}",
                                    name, i, now.size()));
                    break;
                }
        }
    }

    const AttentionProblem& p_;
    const RunOptions& options_;
    bool sparse_;
    bool chunks_;
    PlacedTensors placed_;
    std::vector<std::unique_ptr<MemoryBlock>> blocks_;
    std::size_t input_blocks_ = 0;
    std::vector<std::vector<std::byte>> before_;
};

}  // namespace

void use_gaps_of_chunks() {
    gaps_of_chunks = true;
}

Run run_case(const Implementation& implementation, const AttentionProblem& problem,
             const Inputs& inputs, const RunOptions& options) {
    return with_element_type(problem.dtype, [&](auto element) {
        return Observed<decltype(element)>(problem, inputs, options,
                                           implementation.why_tensors_unsupported != nullptr)
            .run(implementation);
    });
}

}  // namespace fa::suite
