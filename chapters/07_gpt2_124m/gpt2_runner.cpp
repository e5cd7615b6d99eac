#include "chapters/07_gpt2_124m/gpt2_runner.h"

#include <fmt/format.h>

#include <stdexcept>

#include "chapters/07_gpt2_124m/cross_entropy.h"

namespace fa {
namespace {

class CpuRunner : public Gpt2Runner {
  public:
    CpuRunner(const Gpt2& model, const ForwardOptions& options, std::int64_t batch,
              std::int64_t max_length, Forward::Cache cache)
        : model_(model),
          arithmetic_{options.activations, options.threads},
          forward_(model, options, batch, max_length, cache) {}

    void losses(std::span<const std::int32_t> tokens, std::int64_t batch,
                std::span<const std::int32_t> targets, std::span<double> losses) override {
        cross_entropy(model_, forward_.run(tokens, batch), targets, arithmetic_, losses);
    }

    void next_logits(std::span<const std::int32_t> tokens, std::span<float> out) override {
        const auto width = static_cast<std::size_t>(model_.config.width);
        logits(model_, forward_.run(tokens).last(width), arithmetic_, out);
    }

    double attention_seconds() const override { return forward_.attention_seconds(); }

  private:
    const Gpt2& model_;
    Arithmetic arithmetic_;
    Forward forward_;
};

}  // namespace

std::unique_ptr<Gpt2Runner> make_runner(const Gpt2& model, const ForwardOptions& options,
                                        std::int64_t batch, std::int64_t max_length,
                                        Forward::Cache cache) {
    if (options.attention && options.attention->device == Device::cuda) {
#ifdef FA_CUDA_ENABLED
        return make_cuda_runner(model, options, batch, max_length, cache);
#else
        throw std::invalid_argument(
            fmt::format("{} needs a GPU; this build has no CUDA", options.attention->name));
#endif
    }
    return std::make_unique<CpuRunner>(model, options, batch, max_length, cache);
}

}  // namespace fa
