#pragma once
/// @file
/// A kernel of one warp that shows what ldmatrix and mma.sync do: for the executor and for the GPU.

#include "chapters/08_tensor_cores/fragments.h"
#include "chapters/08_tensor_cores/probe_results.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [probe]
/// Puts a tile with element r·16 + c in row r and column c into shared memory, 16 rows of 16 fp16
/// numbers in rows of 64, and keeps what each lane is given of it; then multiplies it by itself.
/// @param out what each lane holds
__global__ void probe_fragments(GlobalPointer<ProbeResults> out) {
    using Layout = TileLayout<64, true>;
    const Lane lane;
    const SharedAddress tile = shared_address(0);
    for (int n = lane.index; n < 16 * 2; n += 32) {
        Packed<Float16, 8> chunk;
        for (int e = 0; e < 8; ++e)
            chunk[e] = from_float<Float16>(static_cast<float>(n / 2 * 16 + n % 2 * 8 + e));
        store_shared(tile + Layout::offset(n / 2, n % 2), chunk);
    }
    warp_barrier();
    ProbeResults own{};
    std::uint32_t A[4], K[4], V[4];
    load_matrices(A, tile + a_offset<Layout>(lane, 0));
    load_matrices(K, tile + k_offset<Layout>(lane, 0));
    load_matrices_transposed(V, tile + v_offset<Layout>(lane, 0));
    float by_k[4] = {}, by_v[4] = {};
    multiply_add<Float16>(by_k, A, K[0], K[1]);
    multiply_add<Float16>(by_v, A, V[0], V[1]);
    for (int n = 0; n < 4; ++n) {
        own.a[n] = A[n], own.k[n] = K[n], own.v[n] = V[n];
        own.by_k[n] = by_k[n], own.by_v[n] = by_v[n];
    }
    out[lane.index] = own;
}
// [probe]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
