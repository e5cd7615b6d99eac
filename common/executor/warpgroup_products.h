#pragma once
/// @file
/// The asynchronous products of one warp (PTX ISA, "wgmma"): its 16 of the 64 rows. As unhelpful as
/// the hardware may be: operands in shared memory are read as late as the warp's wait, and until
/// then the registers of the result hold NaN.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "common/executor/matrix_operands.h"

namespace fa::executor {

/// Which of the products an instruction is.
struct ProductShape {
    ElementType type = ElementType::bfloat16;
    int n = 0;
    bool b_is_rows = false;
    bool add = false;  ///< to the registers of D; else they are written
    bool a_in_registers = false;

    /// Tells shapes apart.
    int code() const {
        return n * 16 + (type == ElementType::float16 ? 8 : 0) + (b_is_rows ? 4 : 0) +
               (add ? 2 : 0) + (a_in_registers ? 1 : 0);
    }
};

/// What one lane brings.
struct ProductRegisters {
    float* d = nullptr;                ///< n / 2 of them
    const std::uint32_t* a = nullptr;  ///< 4 of them, or none
};

/// What the whole warp brings.
struct ProductOperands {
    std::array<ProductRegisters, 32> lane;
    std::uint32_t a = 0, b = 0;  ///< matrices in shared memory
};

/// The products of one warp that are on their way, in groups.
class WarpProducts {
  public:
    /// Bits of a NaN that no computation makes: registers of D hold it until the wait.
    static constexpr std::uint32_t ON_ITS_WAY = 0xffedcba9u;

    /// A product that was issued.
    struct Product {
        ProductShape shape;
        ProductOperands operands;
        std::array<std::array<std::uint32_t, 4>, 32> a_values;  ///< of the registers at issue
        std::uint32_t sequence = 0;  ///< among the block's asynchronous reads
    };

    /// Begins a product. @return what is wrong, or nothing
    std::string issue(const ProductShape& shape, const ProductOperands& operands,
                      std::uint32_t sequence) {
        Accumulator* accumulator = find(operands.lane[0].d);
        if (accumulator == nullptr) {
            accumulator = &accumulators_.emplace_back();
            accumulator->n = shape.n;
            accumulator->values.assign(std::size_t{16} * static_cast<std::size_t>(shape.n), 0);
            for (std::size_t lane = 0; lane < 32; ++lane)
                accumulator->d[lane] = operands.lane[lane].d;
            if (shape.add) accumulator->take();
            accumulator->poison();
        } else {
            if (accumulator->n != shape.n)
                return "two products on their way share registers and differ in width";
            for (std::size_t lane = 0; lane < 32; ++lane)
                if (accumulator->d[lane] != operands.lane[lane].d)
                    return "two products on their way share registers of some lanes only";
        }
        ++accumulator->users;
        Product& product = products_.emplace_back();
        product.shape = shape;
        product.operands = operands;
        product.sequence = sequence;
        if (shape.a_in_registers)
            for (std::size_t lane = 0; lane < 32; ++lane)
                std::memcpy(product.a_values[lane].data(), operands.lane[lane].a, 16);
        return {};
    }

    void commit() { group_ends_.push_back(products_.size()); }
    bool empty() const { return products_.empty(); }

    /// Computes the products of all but the last `pending` groups.
    /// @param shared start of the block's shared memory
    /// @param done   called for each before it is computed
    /// @return what is wrong, or nothing
    std::string wait(std::size_t pending, const std::byte* shared,
                     const std::function<void(const Product&)>& done) {
        if (group_ends_.size() <= pending) return {};
        const std::size_t groups = group_ends_.size() - pending, end = group_ends_[groups - 1];
        for (std::size_t i = 0; i < end; ++i) {
            const Product& product = products_[i];
            Accumulator& accumulator = *find(product.operands.lane[0].d);
            if (product.shape.a_in_registers)
                for (std::size_t lane = 0; lane < 32; ++lane)
                    if (std::memcmp(product.a_values[lane].data(), product.operands.lane[lane].a,
                                    16) != 0)
                        return touched(lane);
            done(product);
            compute(product, accumulator.values.data(), shared);
            --accumulator.users;
        }
        for (auto a = accumulators_.begin(); a != accumulators_.end();) {
            if (a->users != 0) {
                ++a;
                continue;
            }
            if (const int lane = a->touched(); lane >= 0)
                return touched(static_cast<std::size_t>(lane));
            a->give();
            a = accumulators_.erase(a);
        }
        products_.erase(products_.begin(), products_.begin() + static_cast<std::ptrdiff_t>(end));
        group_ends_.erase(group_ends_.begin(),
                          group_ends_.begin() + static_cast<std::ptrdiff_t>(groups));
        for (std::size_t& group_end : group_ends_) group_end -= end;
        return {};
    }

  private:
    static std::string touched(std::size_t lane) {
        return fmt::format(
            "registers of a product on its way were touched before wait_products(), in lane {} of "
            "the warp",
            lane);
    }

    /// The registers of a D that some product on its way writes, and what will be there.
    struct Accumulator {
        std::array<float*, 32> d{};
        int n = 0;
        int users = 0;              ///< products
        std::vector<float> values;  ///< 16 × n

        /// Calls f(lane, register, value) for all of D.
        template <class F>
        void for_each(F&& f) {
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < n / 2; ++i) {
                    const int row = lane / 4 + i % 4 / 2 * 8;
                    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
                    f(lane, d[static_cast<std::size_t>(lane)][i],
                      values[static_cast<std::size_t>(row * n + column)]);
                }
        }
        void take() {
            for_each([](int, float& own, float& value) { value = own; });
        }
        void give() {
            for_each([](int, float& own, float& value) { own = value; });
        }
        void poison() {
            for_each([](int, float& own, float&) { std::memcpy(&own, &ON_ITS_WAY, sizeof own); });
        }
        /// The first lane whose registers do not hold the poison, or -1.
        int touched() {
            int result = -1;
            for_each([&](int lane, float& own, float&) {
                if (result < 0 && std::memcmp(&own, &ON_ITS_WAY, sizeof own) != 0) result = lane;
            });
            return result;
        }
    };

    Accumulator* find(const float* d) {
        for (Accumulator& accumulator : accumulators_)
            if (accumulator.d[0] == d) return &accumulator;
        return nullptr;
    }

    static void compute(const Product& product, float* d, const std::byte* shared) {
        const ProductShape& shape = product.shape;
        float a[16][16];
        if (shape.a_in_registers)
            read_a_registers(a, product.a_values, shape.type);
        else
            read_a(a, product.operands.a, shared, shape.type);
        std::array<float, 16 * MOST_N> b;
        read_b(b.data(), product.operands.b, shape.b_is_rows, shape.n, shared, shape.type);
        if (!shape.add) std::fill_n(d, 16 * shape.n, 0.0f);
        multiply_add_matrices(d, a, b.data(), shape.n);
    }

    std::list<Accumulator> accumulators_;
    std::vector<Product> products_;
    std::vector<std::size_t> group_ends_;
};

}  // namespace fa::executor
