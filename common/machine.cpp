#include "common/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>

#include "common/cost_model.h"
#include "common/text_table.h"

namespace fa {

std::uint64_t machine_memory_bytes() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void check_fits_in_memory(const AttentionProblem& problem, double scratch_bytes) {
    const double needed = qkvo_bytes(problem) + scratch_bytes;
    const auto available = static_cast<double>(machine_memory_bytes());
    if (!(needed <= available))
        throw std::runtime_error(fmt::format("{} takes {}, this machine has {}", describe(problem),
                                             human_bytes(needed), human_bytes(available)));
}

}  // namespace fa
