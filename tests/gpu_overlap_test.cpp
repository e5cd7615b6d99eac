// Launches that overlap. A kernel of chapter 9 begins while the grid before it on the stream ends
// (programmatic dependent launch), and must wait by itself before it touches global memory. Each
// case runs calls directly behind one another, once eagerly and once from a CUDA graph, and wants
// the bits that the same calls give with the stream synchronised after each.
//
// The suite and the hunt of chapter 9 look at results after each call, so that no two of them ever
// overlap there.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "chapters/09_hopper/hunt_compare.h"
#include "common/cuda/random.h"
#include "tests/gpu_late_copy.h"
#include "tests/gpu_overlap.h"

namespace fa {
namespace {

/// Some fifty microseconds: a grid behind is launched, set up and at work long before.
constexpr long long LATE = 100'000;

/// Problems with and without a mask, for 64 and for 128 channels. Each of chapter 9's sizes has an
/// entry of its own among gpu_implementations(); where one fetches tiles from a counter, there are
/// more than it has blocks on 132 multiprocessors.
std::vector<AttentionProblem> problems() {
    const auto problem = [](std::int64_t heads, std::int64_t length, std::int64_t head_dim,
                            bool causal) {
        return AttentionProblem{.heads_q = heads,
                                .heads_kv = heads,
                                .len_q = length,
                                .len_kv = length,
                                .head_dim = head_dim,
                                .dtype = DType::bf16,
                                .causal = causal};
    };
    return {
        problem(4, 512, 64, false),  problem(64, 512, 64, true),   problem(70, 512, 64, false),
        problem(40, 1024, 64, true), problem(40, 512, 128, false), problem(30, 1024, 128, true),
    };
}

/// Room for a call: Q, K and V behind one another in one buffer, O and LSE in another.
struct Call {
    const Implementation& implementation;
    AttentionProblem p;
    DeviceBuffer inputs{tensor_bytes(p.q_shape()) + 2 * tensor_bytes(p.kv_shape())};
    DeviceBuffer outputs{tensor_bytes(p.q_shape()) + lse_bytes(p)};
    DeviceBuffer workspace{implementation.workspace_bytes(p, Launch{})};

    void launch(const CudaStream& stream) const {
        const std::byte *q = inputs.data(), *k = q + tensor_bytes(p.q_shape());
        attention(implementation, p,
                  tensors_at(p, q, k, k + tensor_bytes(p.kv_shape()), outputs.data(),
                             outputs.data() + tensor_bytes(p.q_shape())),
                  workspace.bytes(), Launch{.stream = stream.get()});
    }
};

/// Calls `use` for every implementation and problem that it takes; for the last kernels, which are
/// other ones for fp16, in both types.
template <class Use>
void for_each_call(Use&& use) {
    for (const Implementation* implementation : gpu_implementations())
        for (AttentionProblem p : problems())
            for (DType dtype : {DType::bf16, DType::f16}) {
                p.dtype = dtype;
                if (!implementation->why_unsupported(p).empty()) continue;
                if (dtype == DType::f16 && implementation->name != "cuda_hopper" &&
                    implementation->name != "cuda_hopper_paired")
                    continue;
                CAPTURE(std::string(implementation->name));
                CAPTURE(describe(p));
                use(Call{*implementation, p});
            }
}

/// Random inputs for a call.
void fill_normal(const DeviceBuffer& inputs, const Call& call, const CudaStream& stream) {
    fill_normal_on_device(inputs.data(), call.p.dtype, static_cast<std::int64_t>(inputs.size() / 2),
                          1, stream.get());
}

TEST_CASE("gpu: a thousand runs of each of chapter 9's kernels give the same bits") {
    SKIP_WITHOUT_HOPPER();
    const CudaStream stream;
    for_each_call([&](const Call& call) {
        if (call.implementation.chapter != 9) return;
        fill_normal(call.inputs, call, stream);
        const DeviceBuffer first(call.outputs.size()), differing(sizeof(unsigned long long));
        fill(differing, 0, stream);
        for (int run = 0; run < 1000; ++run) {
            fill(call.outputs, NOTHING_YET, stream);
            call.launch(stream);
            if (run == 0)
                FA_CUDA_CHECK(cudaMemcpyAsync(first.data(), call.outputs.data(), first.size(),
                                              cudaMemcpyDeviceToDevice, stream.get()));
            count_differing_words(call.outputs.data(), first.data(), first.size(),
                                  differing.as<unsigned long long>(), stream.get());
        }
        stream.synchronize();
        CHECK(unwritten(contents(first)) == 0);
        CHECK(contents(differing) == Bytes(sizeof(unsigned long long)));
    });
}

TEST_CASE("gpu overlap: a grid that does not wait for the one before it is found out") {
    SKIP_WITHOUT_HOPPER();
    // That the cases below can fail here: launches do overlap, eagerly and in graphs.
    const CudaStream stream;
    const DeviceBuffer source(1 << 20), middle(1 << 20), end(1 << 20);
    fill(source, 1, stream);
    const auto late = [&] {
        launch_late_copy(middle.data(), source.data(), source.size(), LATE, stream.get());
    };
    const auto reset = [&] {
        fill(middle, NOTHING_YET, stream);
        fill(end, NOTHING_YET, stream);
    };
    const Work hasty{
        late, [&] { launch_hasty_copy(end.data(), middle.data(), source.size(), stream.get()); }};
    run_apart(stream, hasty);
    CHECK(contents(end) == contents(source));
    run_overlapping(stream, hasty, 4, reset, [&] {
        CHECK(contents(middle) == contents(source));
        CHECK(unwritten(contents(end)) > 0);
    });
    // And that one that waits is not.
    const Work patient{
        late, [&] { launch_late_copy(end.data(), middle.data(), source.size(), 0, stream.get()); }};
    run_overlapping(stream, patient, 4, reset, [&] { CHECK(contents(end) == contents(source)); });
}

TEST_CASE("gpu overlap: what a call reads is written late by the grid before it") {
    SKIP_WITHOUT_HOPPER();
    // Finds: no wait_for_grids_before(), or one behind the first load, in a kernel; none in
    // reset_tile_counter(), which would end at once, and the kernel waits for nothing but it. Q, K
    // and V are NaN until the copy, and so is every row of O that a kernel made of them.
    const CudaStream stream;
    for_each_call([&](const Call& call) {
        const DeviceBuffer pristine(call.inputs.size());
        fill_normal(pristine, call, stream);
        const Work work{[&] {
                            launch_late_copy(call.inputs.data(), pristine.data(), pristine.size(),
                                             LATE, stream.get());
                        },
                        [&] { call.launch(stream); }};
        run_apart(stream, work);
        const Bytes expected = contents(call.outputs);
        const auto reset = [&] {
            for (const DeviceBuffer* buffer : {&call.inputs, &call.outputs, &call.workspace})
                if (buffer->size() > 0) fill(*buffer, NOTHING_YET, stream);
        };
        run_overlapping(stream, work, 4, reset, [&] {
            const Bytes found = contents(call.outputs);
            CHECK(unwritten(found) == 0);
            CHECK(differing(found, expected) == 0);
        });
    });
}

TEST_CASE("gpu overlap: what a call writes is read late by the grid before it") {
    SKIP_WITHOUT_HOPPER();
    // Finds: a kernel that stores O or LSE before the grids before it have ended. Its inputs are
    // here, so that nothing else holds it up.
    const CudaStream stream;
    for_each_call([&](const Call& call) {
        fill_normal(call.inputs, call, stream);
        const DeviceBuffer kept(call.outputs.size());
        const Work work{[&] {
                            launch_late_copy(kept.data(), call.outputs.data(), kept.size(), LATE,
                                             stream.get());
                        },
                        [&] { call.launch(stream); }};
        run_apart(stream, work);
        const Bytes expected = contents(call.outputs);
        const auto reset = [&] {
            fill(call.outputs, NOTHING_YET, stream);
            fill(kept, 0, stream);
        };
        run_overlapping(stream, work, 4, reset, [&] {
            CHECK(unwritten(contents(kept)) == kept.size() / 4);
            CHECK(differing(contents(call.outputs), expected) == 0);
        });
    });
}

/// Calls that hand results on. Four buffers of equally many elements lie in a ring: call i writes
/// O into buffer i % 4, which the call before it read, and reads the three others, which the calls
/// before it wrote, as Q, K and V in turns. All share one workspace. Between two calls stands
/// nothing, or NaN is written into the buffer that comes next: by a grid that begins early, or a
/// memset.
class Chain {
  public:
    static constexpr std::size_t CALLS = 12;

    Chain(const Implementation& even, const Implementation& odd, const CudaStream& stream)
        : stream_(stream) {
        std::size_t workspace = 0, elements = 0;
        for (std::size_t i = 0; i < CALLS; ++i) {
            const AttentionProblem p = problem(i / 2);
            // Steps of a ladder may be for 64 channels only.
            const bool turn_of_odd = i % 2 == 1 && odd.why_unsupported(p).empty();
            const Implementation& implementation = turn_of_odd ? odd : even;
            elements = static_cast<std::size_t>(p.q_shape().count());
            workspace =
                std::max(workspace, implementation.workspace_bytes(p, {.stream = stream.get()}));
            calls_.push_back({&implementation, p, DeviceBuffer(lse_bytes(p))});
        }
        workspace_ = DeviceBuffer(workspace);
        nothing_ = DeviceBuffer(2 * elements);
        fill(nothing_, NOTHING_YET, stream);
        for (std::size_t n = 0; n < 4; ++n) {
            ring_[n] = DeviceBuffer(2 * elements);
            start_[n] = DeviceBuffer(2 * elements);
            fill_normal_on_device(start_[n].data(), DType::bf16,
                                  static_cast<std::int64_t>(elements), n + 1, stream.get());
        }
    }

    void reset() const {
        for (std::size_t n = 0; n < 4; ++n) copy(ring_[n], start_[n], stream_);
        for (const Step& step : calls_) fill(step.lse, NOTHING_YET, stream_);
        if (workspace_.size() > 0) fill(workspace_, NOTHING_YET, stream_);
    }

    Work work() const {
        Work work;
        for (std::size_t i = 0; i < CALLS; ++i) {
            work.emplace_back([this, i] { launch(i); });
            const DeviceBuffer* const next = &ring_[(i + 1) % 4];
            if (i % 3 == 1)
                work.emplace_back([this, next] {
                    launch_late_copy(next->data(), nothing_.data(), next->size(), 0, stream_.get());
                });
            if (i % 3 == 2) work.emplace_back([this, next] { fill(*next, NOTHING_YET, stream_); });
        }
        return work;
    }

    /// All that is left at the end.
    std::vector<Bytes> results() const {
        std::vector<Bytes> all;
        for (const DeviceBuffer& buffer : ring_) all.push_back(contents(buffer));
        for (const Step& step : calls_) all.push_back(contents(step.lse));
        return all;
    }

  private:
    struct Step {
        const Implementation* implementation;
        AttentionProblem p;
        DeviceBuffer lse;
    };

    /// Long and short ones in turns, of 64 and 128 channels, each of 80·1024·64 elements: more
    /// tiles than multiprocessors, so that a grid begins among the last tiles of another. Scores of
    /// a standard deviation of 16: each row of O is nearly one of V, and rows stay apart however
    /// often they are handed on.
    static AttentionProblem problem(std::size_t i) {
        constexpr std::int64_t SIZES[][3] = {
            {80, 1024, 64}, {80, 512, 128}, {160, 512, 64}, {40, 1024, 128}};
        const auto [heads, length, head_dim] = SIZES[i % 4];
        return {.heads_q = heads,
                .heads_kv = heads,
                .len_q = length,
                .len_kv = length,
                .head_dim = head_dim,
                .dtype = DType::bf16,
                .scale = head_dim == 64 ? 2.0f : 1.4f,
                .causal = i % 2 == 0};
    }

    void launch(std::size_t i) const {
        const Step& step = calls_[i];
        const auto input = [&](std::size_t n) { return ring_[(i + 1 + (i + n) % 3) % 4].data(); };
        attention(
            *step.implementation, step.p,
            tensors_at(step.p, input(0), input(1), input(2), ring_[i % 4].data(), step.lse.data()),
            workspace_.bytes(), Launch{.stream = stream_.get()});
    }

    const CudaStream& stream_;
    std::vector<Step> calls_;
    std::array<DeviceBuffer, 4> ring_, start_;
    DeviceBuffer workspace_, nothing_;
};

TEST_CASE("gpu overlap: calls that take what the calls before them wrote, and overwrite it") {
    SKIP_WITHOUT_HOPPER();
    // Finds, beside what the cases above do: reset_tile_counter() without its wait, which sets the
    // counter to zero while the grid before still fetches tiles from it, so that the next finds
    // some taken already and leaves rows unwritten; a kernel that fetches its tiles before the
    // counter is reset; O that arrives after the next grid was told that all is here.
    const CudaStream stream;
    const Implementation& hopper = implementation_named("cuda_hopper");
    for (const Implementation* other : gpu_implementations()) {
        CAPTURE(std::string(other->name));
        const Chain chain(hopper, *other, stream);
        chain.reset();
        run_apart(stream, chain.work());
        const std::vector<Bytes> expected = chain.results();
        // Nothing is NaN, and what a buffer held before differs from what it holds next.
        for (std::size_t n = 0; n < 4; ++n) {
            CHECK(unwritten(expected[n]) == (n == Chain::CALLS % 4 ? words(expected[n]) : 0));
            CHECK(differing(expected[n], expected[(n + 1) % 4]) > words(expected[n]) / 2);
        }
        // Faults may show in one run of many.
        const int times = other == &hopper ? 40 : other->chapter == 9 ? 10 : 4;
        run_overlapping(
            stream, chain.work(), times, [&] { chain.reset(); },
            [&] {
                const std::vector<Bytes> found = chain.results();
                for (std::size_t n = 0; n < found.size(); ++n) {
                    CAPTURE(n);  // buffers 0 to 3, then the LSE of each call
                    CHECK(differing(found[n], expected[n]) == 0);
                }
            });
    }
}

}  // namespace
}  // namespace fa
