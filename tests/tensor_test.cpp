/// @file
/// Tensors and views: where element [b, h, t, d] lies, and which types they carry.

#include "common/tensor.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "common/aligned_buffer.h"

using namespace fa;

TEST_CASE("a dense tensor is row-major, batch outermost, and starts at zero") {
    Tensor<float> tensor({2, 3, 5, 4});
    CHECK(tensor.size() == 120);
    CHECK(tensor.bytes() == 480);
    for (const float x : tensor) CHECK(x == 0.0f);
    std::iota(tensor.begin(), tensor.end(), 0.0f);
    for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 3; ++h)
            for (std::int64_t t = 0; t < 5; ++t)
                for (std::int64_t d = 0; d < 4; ++d)
                    CHECK(tensor(b, h, t, d) == static_cast<float>(((b * 3 + h) * 5 + t) * 4 + d));
    const Tensor<BFloat16> half({1, 1, 2, 2});
    CHECK(half.bytes() == 8);
    for (const BFloat16 x : half) CHECK(x.bits == 0);
}

TEST_CASE("a strided view picks Q, K and V out of a packed QKV array") {
    // [batch, token, (q, k, v), head, dim], as a GPT-2 projection writes it
    constexpr std::int64_t B = 2, T = 3, H = 2, D = 4;
    std::vector<float> packed(B * T * 3 * H * D);
    std::iota(packed.begin(), packed.end(), 0.0f);
    const Shape shape{B, H, T, D};
    const Strides strides{T * 3 * H * D, D, 3 * H * D};
    for (std::int64_t part = 0; part < 3; ++part) {
        const View<const float> view{packed.data() + part * H * D, shape, strides};
        for (std::int64_t b = 0; b < B; ++b)
            for (std::int64_t h = 0; h < H; ++h)
                for (std::int64_t t = 0; t < T; ++t)
                    for (std::int64_t d = 0; d < D; ++d)
                        CHECK(view.row(b, h, t)[d] ==
                              static_cast<float>((((b * T + t) * 3 + part) * H + h) * D + d));
    }
}

TEST_CASE("offsets are 64-bit: element counts pass 2^31 at ordinary sizes") {
    const Shape shape{8, 28, 4096, 4096};  // a score matrix: 3.76e9 elements
    CHECK(shape.count() == std::int64_t{8} * 28 * 4096 * 4096);
    // Only the address is computed; from a base of 0 so that no object is needed.
    const Strides strides = Strides::dense(shape);
    const View<const char> view{nullptr, {shape.batch, shape.heads, shape.tokens, 1}, strides};
    const std::int64_t offset =
        7 * view.strides.batch + 27 * view.strides.head + 4095 * view.strides.token;
    CHECK(offset == shape.count() - 4096);
}

TEST_CASE("a view without a type keeps the type of the one it was made from") {
    Tensor<Float16> tensor({1, 2, 3, 8});
    tensor(0, 1, 2, 7) = Float16(1.5f);
    const TensorView any = tensor.view();
    const ConstTensorView constant = static_cast<const Tensor<Float16>&>(tensor).view();
    CHECK(any.dtype == DType::f16);
    CHECK(constant.dtype == DType::f16);
    CHECK(any.shape == tensor.shape());
    CHECK(any.strides == Strides::dense(tensor.shape()));
    CHECK(any.as<Float16>().row(0, 1, 2)[7].bits == Float16(1.5f).bits);
    CHECK(constant.as<Float16>().row(0, 1, 2) == tensor.view().row(0, 1, 2));
    static_assert(std::is_same_v<decltype(constant.as<Float16>().data), const Float16*>);
    static_assert(!std::is_constructible_v<TensorView, View<const float>>, "const must stay const");
}

TEST_CASE("element types have names, sizes and a way back from the name") {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        CHECK(dtype_from_name(name_of(dtype)) == dtype);
        with_element_type(dtype, [&](auto element) {
            CHECK(dtype_of<decltype(element)>() == dtype);
            CHECK(size_of(dtype) == sizeof element);
        });
    }
    CHECK(!dtype_from_name("float"));
    CHECK(!dtype_from_name(""));
}

TEST_CASE("a tensor of no elements is allowed") {
    Tensor<float> tensor({1, 1, 0, 64});
    CHECK(tensor.size() == 0);
    CHECK(tensor.bytes() == 0);
    CHECK(Tensor<float>().size() == 0);
}

TEST_CASE("workspaces are aligned, and carved without overlap") {
    const auto lay_out = [](Carver& carver) {
        float* const a = carver.carve<float>(3);
        double* const b = carver.carve<double>(0);
        std::byte* const c = carver.carve<std::byte>(65);
        float* const d = carver.carve<float>(16);
        return std::vector<const void*>{a, b, c, d};
    };
    Carver counting;
    for (const void* piece : lay_out(counting)) CHECK(piece == nullptr);
    CHECK(counting.used() == 64 + 0 + 128 + 64);

    const AlignedBuffer buffer(counting.used());
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % AlignedBuffer::ALIGNMENT == 0);
    Carver carver(buffer.bytes());
    const std::vector<const void*> pieces = lay_out(carver);
    const std::byte* const base = buffer.bytes().data();
    CHECK(pieces[0] == base);
    CHECK(pieces[2] == base + 64);
    CHECK(pieces[3] == base + 192);
    CHECK(carver.used() == counting.used());
    CHECK_THROWS_AS(carver.carve<float>(1), std::logic_error);

    AlignedBuffer moved(64);
    std::byte* const data = moved.bytes().data();
    const AlignedBuffer target(std::move(moved));
    CHECK(target.bytes().data() == data);
    CHECK(AlignedBuffer(0).bytes().empty());
}
