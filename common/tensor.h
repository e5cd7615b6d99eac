#pragma once
/// @file
/// Tensors of shape [batch, head, token, dim]: a strided view that borrows memory, and an owner.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/dtype.h"

namespace fa {

/// The four extents of a tensor, outermost first.
struct Shape {
    std::int64_t batch = 0;
    std::int64_t heads = 0;
    std::int64_t tokens = 0;
    std::int64_t dim = 0;

    /// Number of elements.
    constexpr std::int64_t count() const { return batch * heads * tokens * dim; }
    bool operator==(const Shape&) const = default;
};

/// Distance, in elements, from one batch, head or token to the next. `dim` is always contiguous.
struct Strides {
    std::int64_t batch = 0;
    std::int64_t head = 0;
    std::int64_t token = 0;

    /// Strides of a dense [batch, head, token, dim] array.
    static constexpr Strides dense(const Shape& s) {
        return {s.heads * s.tokens * s.dim, s.tokens * s.dim, s.dim};
    }
    bool operator==(const Strides&) const = default;
};

/// A view of someone else's memory as [batch, head, token, dim], element type known at compile
/// time.
/// @tparam T float, Float16 or BFloat16, const for a read-only view.
template <class T>
struct View {
    T* data = nullptr;
    Shape shape;
    Strides strides;

    /// The `dim` contiguous elements of one token. 64-bit arithmetic throughout: B·H·T·d passes
    /// 2^31 at ordinary sizes.
    constexpr T* row(std::int64_t batch, std::int64_t head, std::int64_t token) const {
        return data + batch * strides.batch + head * strides.head + token * strides.token;
    }
};

/// As View, with the element type known at run time only. `Void` is `void` or `const void`.
template <class Void>
struct AnyView {
    Void* data = nullptr;
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;

    AnyView() = default;
    AnyView(Void* data_, DType dtype_, Shape shape_, Strides strides_)
        : data(data_), dtype(dtype_), shape(shape_), strides(strides_) {}
    template <class T>
    requires std::is_convertible_v<T*, Void*>  // const elements only into a const view
    AnyView(View<T> view)  // NOLINT(google-explicit-constructor): a View is an AnyView
        : data(view.data),
          dtype(dtype_of<std::remove_const_t<T>>()),
          shape(view.shape),
          strides(view.strides) {}

    /// The typed view. The caller has checked that `T` matches `dtype`.
    template <class T>
    auto as() const {
        using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
        return View<Element>{static_cast<Element*>(data), shape, strides};
    }
};

/// A view that may be written through.
using TensorView = AnyView<void>;
/// A view that may only be read.
using ConstTensorView = AnyView<const void>;

/// Owns a dense [batch, head, token, dim] array on the host, zero-filled at first.
template <class T>
class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(Shape shape)
        : shape_(shape), elements_(static_cast<std::size_t>(shape.count())) {}

    const Shape& shape() const { return shape_; }
    T* data() { return elements_.data(); }
    const T* data() const { return elements_.data(); }
    std::size_t size() const { return elements_.size(); }
    std::size_t bytes() const { return elements_.size() * sizeof(T); }
    auto begin() { return elements_.begin(); }
    auto end() { return elements_.end(); }
    auto begin() const { return elements_.begin(); }
    auto end() const { return elements_.end(); }

    View<T> view() { return {elements_.data(), shape_, Strides::dense(shape_)}; }
    View<const T> view() const { return {elements_.data(), shape_, Strides::dense(shape_)}; }

    T& operator()(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
        return view().row(b, h, t)[d];
    }
    const T& operator()(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) const {
        return view().row(b, h, t)[d];
    }

  private:
    Shape shape_;
    std::vector<T> elements_;
};

}  // namespace fa
