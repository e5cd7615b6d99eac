#include <array>
#include <bit>
#include <set>
#include <string>

#include "common/exercise.h"
#include "common/half.h"
#include FA_EXERCISE

namespace {

constexpr int KEYS = 16, CHANNELS = 32;

// Small whole numbers without a pattern: every product and sum of them is exact in all types.
float q_at(int query, int channel) {
    return static_cast<float>((query * 7 + channel * channel * 5 + query * channel) % 3 - 1);
}
float k_at(int key, int channel) {
    return static_cast<float>((key * 5 + channel * 11 + key * key * channel) % 3 - 1);
}
float v_at(int key, int output) {
    return static_cast<float>((key * 3 + output * 7 + key * output) % 5 - 2);
}
float score(int query, int key) {
    float sum = 0;
    for (int c = 0; c < CHANNELS; ++c) sum += q_at(query, c) * k_at(key, c);
    return sum;
}

/// Neighbours 2·N·q … of a row, as a lane reads them.
template <class T, int N, class Element>
fa::Packed<std::uint32_t, N> neighbours(int q, Element&& element) {
    fa::Packed<std::uint32_t, N> chunk;
    for (int n = 0; n < N; ++n)
        chunk[n] = fa::pack<T>(element(2 * N * q + 2 * n), element(2 * N * q + 2 * n + 1));
    return chunk;
}

/// One register of each lane against what it should be.
struct Lanes {
    std::array<std::array<float, 4>, 32> found{}, right{};

    std::string differ(const std::string& what) const {
        for (std::size_t lane = 0; lane < 32; ++lane)
            for (std::size_t n = 0; n < 4; ++n)
                if (found[lane][n] != right[lane][n])
                    return fmt::format("{}[{}] of lane {} is {}, should be {}", what, n, lane,
                                       found[lane][n], right[lane][n]);
        return "";
    }
};

/// What the lane calls for the keys of one half; S begins with numbers of its own.
template <class T, class KeyOf>
void scores_of_lane(float (&S)[4], int lane, KeyOf&& key_of) {
    const int g = lane / 4, q = lane % 4;
    const auto query = [&](int row) {
        return neighbours<T, 4>(q, [=](int channel) { return q_at(row, channel); });
    };
    fa::exercise::add_scores<T>(S, query(g), query(g + 8), neighbours<T, 4>(q, [&](int channel) {
                                    return k_at(key_of(g), channel);
                                }));
}

template <class T>
std::string scores_differ() {
    Lanes lanes;
    fa::executor::run({1}, {32}, 0, [&] {
        const int lane = static_cast<int>(threadIdx.x), g = lane / 4, q = lane % 4;
        float S[4] = {1, 2, 3, 4};
        scores_of_lane<T>(S, lane, [](int key) { return key; });
        for (int n = 0; n < 4; ++n) {
            const auto i = static_cast<std::size_t>(lane), e = static_cast<std::size_t>(n);
            lanes.found[i][e] = S[n];
            lanes.right[i][e] = static_cast<float>(n + 1) + score(g + n / 2 * 8, 2 * q + n % 2);
        }
    });
    return lanes.differ("S");
}

template <class T>
std::string outputs_differ() {
    Lanes lanes;
    fa::executor::run({1}, {32}, 0, [&] {
        const int lane = static_cast<int>(threadIdx.x), g = lane / 4, q = lane % 4;
        float P[2][4] = {}, O[4] = {1, 2, 3, 4};
        for (int half = 0; half < 2; ++half)
            scores_of_lane<T>(P[half], lane,
                              [=](int key) { return fa::exercise::key_of(half, key); });
        fa::exercise::add_values<T>(O, P[0], P[1],
                                    neighbours<T, 2>(q, [=](int key) { return v_at(key, g); }));
        for (int n = 0; n < 4; ++n) {
            const auto i = static_cast<std::size_t>(lane), e = static_cast<std::size_t>(n);
            lanes.found[i][e] = O[n];
            lanes.right[i][e] = static_cast<float>(n + 1);
            for (int key = 0; key < KEYS; ++key)
                lanes.right[i][e] += score(g + n / 2 * 8, key) * v_at(key, 2 * q + n % 2);
        }
    });
    return lanes.differ("O");
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 8.2: the order of a sum");
    exercise.invariant(
        "scores are sums over all 32 channels", [] { return scores_differ<fa::BFloat16>(); },
        "in each of the two products a lane gives four of its eight channels: two to a[0], a[1] "
        "(queries g and g + 8) and b0, two to a[2], a[3] and b1.");
    exercise.invariant(
        "each of the 16 keys is given once",
        [] {
            std::set<int> keys;
            for (int n = 0; n < KEYS; ++n) {
                const int key = fa::exercise::key_of(n / 8, n % 8);
                if (key < 0 || key >= KEYS || !keys.insert(key).second)
                    return fmt::format("key {} as number {} of half {}", key, n % 8, n / 8);
            }
            return std::string();
        },
        "half and the lowest bit of g choose one of four neighbours, the rest of g which four.");
    exercise.invariant(
        "a lane holds weights for the four keys whose values it reads",
        [] {
            for (int lane = 0; lane < 4; ++lane)
                for (int n = 0; n < 4; ++n) {
                    const int key = fa::exercise::key_of(n / 2, 2 * lane + n % 2);
                    if (key / 4 != lane)
                        return fmt::format("lane {} holds the weight of key {}", lane, key);
                }
            return std::string();
        },
        "of the accumulator a lane holds columns 2q and 2q + 1: the keys that were given as "
        "numbers 2q and 2q + 1 of each half.");
    exercise.invariant(
        "outputs are sums over all 16 keys", [] { return outputs_differ<fa::BFloat16>(); },
        "a[0] and a[1] meet b0, a[2] and a[3] meet b1: pack the weights of the two keys whose "
        "values are in that register, for query g and for query g + 8.");
    exercise.invariant(
        "in fp16, too",
        [] {
            const std::string found = scores_differ<fa::Float16>();
            return found.empty() ? outputs_differ<fa::Float16>() : found;
        },
        "weights are rounded to T, and T need not be bf16.");
    return exercise.finish();
}
