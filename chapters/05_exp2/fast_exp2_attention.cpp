#include "chapters/05_exp2/fast_exp2_attention.h"

#include "chapters/03_blocked_attention/fast_kernel.h"
#include "chapters/05_exp2/folded_scale.h"

namespace fa {
namespace {

using register_tiles::MINUS_INFINITY;
using simd::Floats;

// [weights]
/// How scores become softmax weights: 2^(c·s − c·m). Takes the place of register_tiles::ExpWeights.
class Exp2Weights {
  public:
    explicit Exp2Weights(float scale) : scale_(scale) {}

    float query_factor() const { return scale_.sign; }

    struct Shift {
        Floats m, c, product;
    };
    Shift shift(Floats maximum) const {
        const Floats m = maximum == MINUS_INFINITY ? Floats{} : maximum;
        const Floats c = scale_.for_maximum(m);
        return {m, c, m * c};
    }
    Floats weight(Floats score, const Shift& shift) const {
        return simd::exp2(score * shift.c - shift.product);  // one multiply-add
    }
    /// Not a multiply-add: it must be 1 where the maximum stays, and m·c − product is not 0.
    Floats correction(Floats old_maximum, const Shift& shift) const {
        return simd::exp2((old_maximum - shift.m) * shift.c);
    }

    float lse(float m, float l) const { return (m * scale_.scale_log2 + std::log2(l)) * LN_2; }

  private:
    FoldedScale scale_;
};
// [weights]

}  // namespace

constinit const Implementation CPU_FAST_EXP2 =
    register_tiles::entry<Exp2Weights>("cpu_fast_exp2", 5, "cpu_fast with exp2 and a folded scale");

}  // namespace fa
