#include <fmt/format.h>

#include "common/memory_meter.h"
#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {

Failures check_poison(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (std::int64_t len_kv : {1, 9, 63, 65, 127, 503})
            for (std::int64_t len_q : {1, 130})
                for (bool causal : {false, true}) {
                    const SuiteCase c{.problem = {.batch = 2,
                                                  .heads_q = 2,
                                                  .heads_kv = 2,
                                                  .len_q = len_q,
                                                  .len_kv = len_kv,
                                                  .head_dim = 64,
                                                  .dtype = dtype,
                                                  .causal = causal}};
                    if (!supports(implementation, c.problem)) continue;
                    const Inputs& inputs = prepared(c).inputs;
                    const std::string label = label_of(implementation, describe(c), {});
                    // 128 rows of NaN follow each head's keys, a tile and more. Then the same with
                    // other garbage in O, LSE and workspace, and with nothing behind at all.
                    const Run poisoned =
                        run_case(implementation, c.problem, inputs, {.spare_rows = 128});
                    check_prepared(failures, implementation, label, c.problem, prepared(c),
                                   poisoned);
                    const Run numbers = run_case(implementation, c.problem, inputs,
                                                 {.fill = Fill::number, .spare_rows = 128});
                    if (!same_bits(poisoned.o, numbers.o) || !same_bits(poisoned.lse, numbers.lse))
                        failures.push_back(
                            label + ": old contents of the outputs or the workspace show through");
                    check_case(failures, implementation, c, {.layout = Layout::tight});
                    const Run without = run_case(implementation, c.problem, inputs,
                                                 {.want_lse = false, .spare_rows = 128});
                    for (const std::string& fault : without.faults)
                        failures.push_back(label + ", no LSE: " + fault);
                    if (!same_bits(poisoned.o, without.o))
                        failures.push_back(label + ": O changes when LSE is not wanted");
                }
    return failures;
}

Failures check_layouts(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (bool causal : {false, true})
            for (std::int64_t d : {24, 80}) {
                // Layouts and masks have nothing to do with one another; the executor has no time
                // to show it.
                if (implementation.device == Device::executor && !causal) continue;
                for (std::int64_t heads_kv : {1, 4})
                    for (Layout layout : {Layout::dense, Layout::tight, Layout::token_major,
                                          Layout::packed_qkv, Layout::gaps}) {
                        const SuiteCase c{.problem = {.batch = 2,
                                                      .heads_q = 4,
                                                      .heads_kv = heads_kv,
                                                      .len_q = 70,
                                                      .len_kv = 70,
                                                      .head_dim = d,
                                                      .dtype = dtype,
                                                      .causal = causal}};
                        check_case(failures, implementation, c, {.layout = layout});
                    }
                // Data that starts between two vectors: 4 mod 32, and for 16-bit types 2 as well.
                const SuiteCase c{.problem = {.batch = 1,
                                              .heads_q = 2,
                                              .heads_kv = 2,
                                              .len_q = 45,
                                              .len_kv = 133,
                                              .head_dim = d,
                                              .dtype = dtype,
                                              .causal = causal}};
                for (std::size_t phase : {size_of(dtype), std::size_t{4}, std::size_t{36}})
                    for (Layout layout : {Layout::tight, Layout::gaps})
                        check_case(failures, implementation, c, {.layout = layout, .phase = phase});

                // One K and V for all batches, by a batch stride of 0.
                SuiteCase shared = c;
                shared.problem.batch = 3;
                if (!supports(implementation, shared.problem)) continue;
                Inputs inputs = prepared(shared).inputs;
                for (auto* values : {&inputs.k, &inputs.v}) {
                    const std::size_t part = values->size() / 3;
                    for (std::size_t n = part; n < values->size(); ++n)
                        (*values)[n] = (*values)[n - part];
                }
                const Prepared known = prepare(shared.problem, inputs);
                check_prepared(
                    failures, implementation,
                    label_of(implementation, describe(shared) + ", K and V broadcast", {}),
                    shared.problem, known,
                    run_case(implementation, shared.problem, known.inputs, {.broadcast_kv = true}));
            }
    return failures;
}

Failures check_far_apart(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (std::int64_t heads : {1, 2})
            for (std::int64_t tokens : {1, 3, 5}) {
                const SuiteCase c{.problem = {.batch = 3 - heads,
                                              .heads_q = heads,
                                              .heads_kv = heads,
                                              .len_q = tokens,
                                              .len_kv = tokens,
                                              .head_dim = 64,
                                              .dtype = dtype,
                                              .causal = true}};
                check_case(failures, implementation, c, {.layout = Layout::far});
            }
    return failures;
}

Failures check_heap(const Implementation& implementation) {
    if (!MemoryMeter::active())
        return {"this program was linked without the memory meter: nothing is counted"};
    constexpr std::size_t DIM = 64, THREADS = 2;
    const bool on_executor = implementation.device == Device::executor;
    // On the executor each thread of a block has a stack. So this is a length for which chapter 9
    // chooses blocks of as many threads as for half of it.
    const std::size_t length = on_executor ? 1920 : 2000;
    // What the libraries may take beside the workspace, per thread: room to pack a tile, and
    // Eigen's matrix product may pack all of K. A hidden S would take several times as much.
    const std::size_t allowance = THREADS * (length * DIM * sizeof(float) + 256 * 1024);
    const RunOptions options{.layout = Layout::dense, .threads = THREADS};
    Failures failures;
    for (DType dtype : dtypes_of(implementation)) {
        const auto peak_at = [&](std::size_t tokens) {
            const SuiteCase c{.problem = {.len_q = static_cast<std::int64_t>(tokens),
                                          .len_kv = static_cast<std::int64_t>(tokens),
                                          .head_dim = DIM,
                                          .dtype = dtype,
                                          .causal = true}};
            return run_case(implementation, c.problem, make_inputs(c), options).held_beside;
        };
        // The executor has a stack for every thread of a block, and what is on its way in one,
        // whatever the problem's size, if it is more than a few tiles.
        const std::size_t executors_own = on_executor ? peak_at(length / 2) : 0;
        const std::size_t peak = peak_at(length);
        if (peak > executors_own + allowance)
            failures.push_back(fmt::format(
                "{}: {}, T={}: holds {} bytes beside its workspace, {} "
                "allowed",
                implementation.name, name_of(dtype), length, peak, executors_own + allowance));
    }
    return failures;
}

}  // namespace fa::suite
