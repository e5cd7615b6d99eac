/// @file
/// ch07_gpt2_124m from outside: models and tokens of one's own, and one line for what is wrong.

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "chapters/07_gpt2_124m/lab_sheet.h"
#include "tests/gpt2_files.h"
#include "tests/run_program.h"
#include "tests/temporary_directory.h"

using namespace fa::testing;

namespace {

/// A folder with a small model of bytes and a text.
class Folder {
  public:
    /// @param norm   the first weight of the last layer norm
    /// @param scaled whether scores are divided by √d
    explicit Folder(float norm = 1, bool scaled = true) {
        ModelFiles files = small_model();
        files.config["scale_attn_weights"] = scaled;
        files.tensors["ln_f.weight"].values[0] = norm;
        files.config["vocab_size"] = 256;
        FileTensor& embedding = files.tensors["wte.weight"];
        const std::vector<float> some = embedding.values;
        embedding.shape[0] = 256;
        embedding.values.resize(256 * 30);
        for (std::size_t i = 0; i < embedding.values.size(); ++i)
            embedding.values[i] = some[i % some.size()] + static_cast<float>(i / some.size());
        files.write(directory_.path());
        directory_.write("text.txt",
                         "It is not the arithmetic that makes me tired. It is the road.");
    }

    /// Runs with this model and text, and more flags.
    ProgramRun run(std::vector<std::string> flags) const {
        std::vector<std::string> arguments{FA_CH07,    "--model",        directory_.path().string(),
                                           "--tokens", path("text.txt"), "--device",
                                           "cpu"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        return run_program(arguments);
    }

    std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
    const TemporaryDirectory& directory() const { return directory_; }

  private:
    TemporaryDirectory directory_;
};

void check_one_line(const ProgramRun& run, int status, const std::string& part) {
    CAPTURE(run.err);
    CHECK(run.exit_status == status);
    CHECK(run.err.find("ch07_gpt2_124m: ") == 0);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK(run.err.find(part) != std::string::npos);
}

nlohmann::json read_json(const std::string& path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("a model of one's own: rows, tails, chosen attentions") {
    const Folder folder;
    const ProgramRun run =
        folder.run({"--json", folder.path("out.json"), "--implementations", "cpu_naive,cpu_fast",
                    "--activations", "fp32", "--context", "16", "--batch", "3", "--prompt", "It is",
                    "--generate", "8", "--threads", "2"});
    CAPTURE(run.out);
    CAPTURE(run.err);
    REQUIRE(run.exit_status == 0);
    CHECK(run.err.empty());
    const nlohmann::json results = read_json(folder.path("out.json"));
    REQUIRE(results["rows"].size() == 2);
    for (const auto& row : results["rows"]) {
        CHECK(row["tokens"] == 60);
        CHECK(row["status"] == "ok");
        CHECK(row["dtype"] == "fp32");
        CHECK(row["device"] == "cpu");
        CHECK(row["sequence_losses"].size() == 4);
        CHECK(row["loss"].get<double>() > 0);
        CHECK(row["tokens_per_s"].get<double>() > 0);
        CHECK(row["attention_share"].get<double>() > 0);
        CHECK(row["attention_share"].get<double>() < 1);
    }
    CHECK(results["rows"][0]["implementation"] == "cpu_naive");
    CHECK(results["rows"][0]["loss_delta"] == 0.0);
    // Two operations for each weight of a matrix product and each token.
    REQUIRE(results["outside_attention"].size() == 1);
    const auto& outside = results["outside_attention"][0];
    CHECK(outside["implementation"] == "cpu_naive");
    CHECK(outside["device"] == "cpu");
    CHECK(outside["dtype"] == "fp32");
    CHECK(outside["matrix_flops"] == 60 * 2 * (2 * (4 * 30 * 30 + 2 * 30 * 44) + 256 * 30));
    CHECK(outside["predicted_seconds"].get<double>() ==
          doctest::Approx(outside["matrix_flops"].get<double>() /
                          outside["matrix_flops_per_s"].get<double>()));
    CHECK(outside["seconds"].get<double>() ==
          doctest::Approx(results["rows"][0]["seconds"].get<double>() -
                          results["rows"][0]["attention_seconds"].get<double>()));
    CHECK(outside["bound_share"].get<double>() ==
          doctest::Approx(outside["predicted_seconds"].get<double>() /
                          outside["seconds"].get<double>()));
    CHECK(run.out.find("Outside attention, predicted: ") != std::string::npos);
    CHECK(results["largest_scores"].size() == 2);
    CHECK(results["continuation"]["prompt"] == "It is");
    CHECK(results["model"]["parameters"].get<int>() > 0);
    // Where a file lies is nobody's business.
    CHECK(results.dump().find(folder.directory().path().string()) == std::string::npos);
    CHECK(run.out.find("60 targets in 4 sequences") != std::string::npos);
    CHECK(run.out.find("[It is]") != std::string::npos);

    const ProgramRun few = folder.run({"--count", "5", "--implementations", "cpu_fast", "--stats",
                                       "9223372036854775807", "--activations", "fp32"});
    CHECK(few.exit_status == 0);
    CHECK(few.out.find("5 targets in 1 sequences of 5,") != std::string::npos);
    // One target is no mean: what holds of many is not claimed.
    const ProgramRun one = folder.run({"--count", "1", "--activations", "bf16,fp16"});
    CAPTURE(one.out);
    CHECK(one.exit_status == 0);
}

TEST_CASE("a reference that does not hold fails the run") {
    const Folder folder;
    folder.directory().write("reference.json",
                             R"({"per_sequence_loss_f32": [1.0, 1.0], "context": 40, "targets": 60,
                                 "tokens_file": "text.txt"})");
    const ProgramRun run = folder.run({"--implementations", "cpu_fast"});
    CHECK(run.exit_status == 1);
    CHECK(run.out.find("FAIL") != std::string::npos);
    // It is for text.txt alone.
    folder.directory().write("other.txt", "Behind him the lamps were lit in the reading room.");
    CHECK(folder.run({"--tokens", folder.path("other.txt")}).exit_status == 2);  // given twice
    const ProgramRun other = run_program({FA_CH07, "--model", folder.directory().path().string(),
                                          "--tokens", folder.path("other.txt"), "--device", "cpu"});
    CHECK(other.exit_status == 0);
}

TEST_CASE("a network of NaN fails the run, also with one attention alone") {
    for (const float wrong : {NAN, INFINITY}) {
        const Folder folder(wrong);
        const ProgramRun run =
            folder.run({"--implementations", "cpu_fast", "--activations", "fp32"});
        CAPTURE(run.out);
        CHECK(run.exit_status == 1);
        CHECK(run.out.find("losses that are not finite") != std::string::npos);

        // With a text to continue all is told and written just so.
        const ProgramRun all =
            folder.run({"--prompt", "It", "--generate", "8", "--json", folder.path("nan.json")});
        CAPTURE(all.out);
        CHECK(all.exit_status == 1);
        CHECK(all.err.empty());
        CHECK(all.out.find("No text is continued") != std::string::npos);
        CHECK(all.out.find("losses that are not finite") != std::string::npos);
        CHECK(all.out.find("-nan") == std::string::npos);
        CHECK(read_json(folder.path("nan.json"))["rows"][0]["loss"].is_null());
    }
}

TEST_CASE("where scores are not divided, fp32 bounds are as much wider, and 16 bits have none") {
    const auto checks = [](bool scaled) {
        const Folder folder(1, scaled);
        const ProgramRun run =
            folder.run({"--activations", "bf16", "--implementations", "cpu_naive,cpu_fast",
                        "--count", "60", "--json", folder.path("out.json")});
        CAPTURE(run.out);
        CHECK(run.exit_status == 0);
        CHECK((run.out.find("does not divide its scores") != std::string::npos) == !scaled);
        return read_json(folder.path("out.json"))["checks"];
    };
    CHECK(checks(true).size() == checks(false).size());  // 60 targets are too few for 16 bits
    CHECK(checks(true)[1]["goal"] == "<= 1e-05");
    CHECK(checks(false)[1]["goal"] == "<= 3.16e-05");  // heads have 10 channels

    const fa::EvaluationPlan plan{.count = 65536, .context = 1024};
    fa::Gpt2Config config{.layers = 2, .heads = 3, .width = 30};
    CHECK(fa::score_growth(config) == 1);
    CHECK(*fa::sixteen_bit_bound(plan, config) == fa::SIXTEEN_BIT_BOUND);
    config.scale_by_head_dim = false;
    CHECK(fa::score_growth(config) == doctest::Approx(config.attention_scale(0) * std::sqrt(10)));
    CHECK_FALSE(fa::sixteen_bit_bound(plan, config));
}

TEST_CASE("a wrong reference.json is refused by key, in our words") {
    const Folder folder;
    const auto refused = [&](const std::string& text, const std::string& words) {
        CAPTURE(text);
        const auto file = folder.directory().write("wrong.json", text).string();
        const ProgramRun run = folder.run({"--reference", file});
        check_one_line(run, 1, "wrong.json" + words);
        CHECK(run.err.find("exception") == std::string::npos);
        CHECK(run.out.empty());
    };
    const auto with = [](const std::string& more) {
        return R"({"context": 40, "targets": 60, "per_sequence_loss_f32": [1, 2], )" + more + "}";
    };
    refused("{", ": no JSON, at byte 2");
    refused("[1]", ": no JSON object");
    refused("{}", ": no \"per_sequence_loss_f32\"");
    refused(R"({"per_sequence_loss_f32": 3})",
            ": \"per_sequence_loss_f32\" is 3, not a list of numbers");
    refused(R"({"per_sequence_loss_f32": [1, "x"]})",
            ": \"per_sequence_loss_f32\"[1] is \"x\", not a number");
    refused(R"({"per_sequence_loss_f32": [1e999]})", ": a number does not fit into 64 bits");
    refused(R"({"per_sequence_loss_f32": [1], "context": "1"})",
            ": \"context\" is \"1\", not an integer from 1 to");
    refused(R"({"per_sequence_loss_f32": [1, 2], "context": 40, "targets": 90})",
            ": \"targets\" is 90 and \"context\" 40, which makes 3 sequences; "
            "\"per_sequence_loss_f32\" has 2 losses");
    refused(with(R"("implementation": 3)"), ": \"implementation\" is 3, not a string");
    refused(with(R"("tokens_file": "../x")"),
            ": \"tokens_file\" is \"../x\", not the name of a file");
    refused(with(R"("loss": 3)"), ": \"loss\" is 3, not an object");
    refused(with(R"("loss": {"bf16_eager": "x"})"),
            ", in \"loss\": \"bf16_eager\" is \"x\", not a number");
    refused(with(R"("greedy_f32": {})"), ", in \"greedy_f32\": no \"prompt\"");
    refused(with(R"("greedy_f32": {"prompt": "a", "new_tokens": {"a": 1}})"),
            ", in \"greedy_f32\": \"new_tokens\" is object, not a list of token ids");
    refused(with(R"("greedy_f32": {"prompt": "a", "new_tokens": [1, -1]})"),
            ", in \"greedy_f32\": \"new_tokens\"[1] is -1, not an integer from 0 to 2147483647");
}

TEST_CASE("wrong usage and bad files: one line each") {
    const Folder folder;
    check_one_line(folder.run({"--context", "41"}), 2, "40");
    check_one_line(folder.run({"--count", "61"}), 2, "60 targets");
    check_one_line(folder.run({"--batch", "0"}), 2, "--batch");
    check_one_line(folder.run({"--implementations", "gpu_magic"}), 2, "cpu_naive");
    CHECK(folder.run({"--implementations", "gpu_magic"}).err.find("cuda_") == std::string::npos);
    check_one_line(folder.run({"--implementations", "cpu_fast,"}), 2, "empty");
    check_one_line(folder.run({"--implementations", "cpu_fast,cpu_fast"}), 2, "twice");
    check_one_line(folder.run({"--activations", "fp8"}), 2, "fp8");
    check_one_line(folder.run({"--activations", "bf16,"}), 2, "empty");
    check_one_line(folder.run({"--prompt", "It", "--generate", "9223372036854775807"}), 2, "40");
    check_one_line(folder.run({"--prompt", "It is", "--generate", "36"}), 2, "40");
    check_one_line(folder.run({"--temperature", "-1"}), 2, "--temperature");
    check_one_line(folder.run({"--reference", folder.path("none.json")}), 1, "none.json");
    check_one_line(run_program({FA_CH07, "--model", folder.path("none")}), 1, "config.json");
    check_one_line(run_program({FA_CH07, "--model", folder.directory().path().string()}), 2,
                   "--tokens");
    const auto with_tokens = [&](const std::string& tokens) {
        return run_program(
            {FA_CH07, "--model", folder.directory().path().string(), "--tokens", tokens});
    };
    check_one_line(with_tokens(folder.path("none.txt")), 1, "none.txt");
    check_one_line(with_tokens(folder.directory().write("one.txt", "x").string()), 2, "one token");
    check_one_line(with_tokens(folder.directory().write("empty.txt", "").string()), 1, "empty.txt");

    for (const char* text : {"[]", "{", "{}"}) {
        const auto reference = folder.directory().write("bad.json", text).string();
        check_one_line(folder.run({"--reference", reference}), 1, "bad.json");
    }
    check_one_line(folder.run({"--reference", folder.directory().path().string()}), 1,
                   "not a regular file");
    const auto prompted =
        folder.directory()
            .write("prompt.json", R"({"per_sequence_loss_f32": [1, 1], "context": 40, "targets": 60,
                                      "greedy_f32": {"prompt": "It is", "new_tokens": [1]}})")
            .string();
    check_one_line(folder.run({"--reference", prompted, "--generate", "36"}), 2,
                   "the reference's prompt");

    // Bytes with a shard's name: neither guessed nor evaluated.
    const std::string bytes = folder.directory().write("bytes.bin", "It is the road.").string();
    check_one_line(with_tokens(bytes), 1, "shard");
    const ProgramRun as_text =
        run_program({FA_CH07, "--model", folder.directory().path().string(), "--tokens", bytes,
                     "--token-format", "text", "--device", "cpu", "--implementations", "cpu_fast"});
    CHECK(as_text.exit_status == 0);
    CHECK(as_text.out.find("14 targets") != std::string::npos);
    check_one_line(folder.run({"--token-format", "bytes"}), 2, "--token-format");

    folder.directory().write("model.safetensors", "no such thing");
    check_one_line(folder.run({}), 1, "model.safetensors");
    folder.directory().write("config.json", "{\"n_layer\": 0}");
    check_one_line(folder.run({}), 1, "n_layer");
}
