/// @file
/// Chapter 7 on the GPU: what is not attention is predicted and measured, in each type.

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/gpu_test.h"
#include "tests/run_program.h"
#include "tests/temporary_directory.h"

namespace fa {
namespace {

TEST_CASE("gpu: the tiny GPT's time outside attention") {
    SKIP_WITHOUT_GPU();
    const testing::TemporaryDirectory directory;
    const std::string file = (directory.path() / "out.json").string();
    const ProgramRun run =
        run_program({FA_CH07, "--device", "cuda", "--json", file, "--activations", "fp32,bf16",
                     "--implementations", "cuda_naive,cuda_exp2"});
    CAPTURE(run.out);
    CAPTURE(run.err);
    CHECK(run.exit_status == 0);
    std::ifstream stream(file);
    const auto results = nlohmann::json::parse(stream);
    REQUIRE(results["outside_attention"].size() == 2);
    for (const auto& outside : results["outside_attention"]) {
        CAPTURE(outside.dump());
        CHECK(outside["implementation"] == "cuda_naive");
        CHECK(outside["device"] == "cuda");
        CHECK(outside["matrix_flops_per_s"].get<double>() > 0);
        CHECK(outside["seconds"].get<double>() > 0);
        // The products alone cannot take longer than all there is, but for a clock that changes.
        CHECK(outside["bound_share"].get<double>() > 0);
        CHECK(outside["bound_share"].get<double>() < 1.1);
    }
    CHECK(results["outside_attention"][0]["dtype"] == "fp32");
    CHECK(results["outside_attention"][1]["dtype"] == "bf16");
    const std::string words = "Outside attention, predicted: ";
    const std::size_t first = run.out.find(words);
    REQUIRE(first != std::string::npos);
    CHECK(run.out.find(words, first + 1) != std::string::npos);
}

}  // namespace
}  // namespace fa
