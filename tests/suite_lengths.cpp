#include <array>
#include <utility>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {

Failures check_lengths(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (std::int64_t length : {1, 31, 33, 63, 64, 65, 97, 127, 128, 129, 257, 1000, 1025})
            for (bool causal : {false, true}) {
                if (length > longest_length(implementation)) continue;
                const std::int64_t heads = length < 512 ? 2 : 1;
                check_case(failures, implementation,
                           {.problem = {.batch = heads,
                                        .heads_q = heads,
                                        .heads_kv = heads,
                                        .len_q = length,
                                        .len_kv = length,
                                        .head_dim = 64,
                                        .dtype = dtype,
                                        .causal = causal}});
            }
    return failures;
}

Failures check_unequal_lengths(const Implementation& implementation) {
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 21> LENGTHS{
        {{1, 64},    {64, 1},   {1, 65},   {5, 2},    {2, 5},     {31, 33},   {33, 31},
         {33, 129},  {129, 33}, {64, 65},  {65, 64},  {63, 128},  {128, 63},  {127, 257},
         {257, 127}, {97, 300}, {300, 97}, {1, 1025}, {1025, 40}, {40, 1025}, {200, 520}}};
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (const auto& [len_q, len_kv] : LENGTHS)
            for (bool causal : {false, true})
                check_case(failures, implementation,
                           {.problem = {.batch = 2,
                                        .heads_q = 2,
                                        .heads_kv = 1,
                                        .len_q = len_q,
                                        .len_kv = len_kv,
                                        .head_dim = 64,
                                        .dtype = dtype,
                                        .causal = causal}});
    return failures;
}

Failures check_head_dims(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (std::int64_t head_dim :
             {1, 8, 16, 24, 32, 40, 63, 64, 72, 80, 96, 100, 112, 128, 160, 192, 255, 256})
            for (bool causal : {false, true})
                check_case(failures, implementation,
                           {.problem = {.batch = 1,
                                        .heads_q = 2,
                                        .heads_kv = 2,
                                        .len_q = 97,
                                        .len_kv = 161,
                                        .head_dim = head_dim,
                                        .dtype = dtype,
                                        .causal = causal}});
    return failures;
}

Failures check_last_channel(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (std::int64_t head_dim : {1, 8, 16, 24, 40, 63, 64, 72, 80, 96, 128, 192, 256})
            check_case(failures, implementation,
                       {.problem = {.len_q = 33,
                                    .len_kv = 70,
                                    .head_dim = head_dim,
                                    .dtype = dtype,
                                    .causal = true},
                        .pattern = Pattern::last_channel});
    return failures;
}

}  // namespace fa::suite
