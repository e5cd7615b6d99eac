// Chapter 9's hunt as far as it goes without a GPU: the cases that it draws, where their tensors
// lie, and what it learns from its processes.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/hopper_support.h"
#include "chapters/09_hopper/hunt_cases.h"
#include "chapters/09_hopper/hunt_processes.h"
#include "tests/temporary_directory.h"

namespace fa {
namespace {

/// Nobody reads or writes there.
std::byte* far_away() {
    return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
}

/// Bytes from `memory` to an element of a view.
template <class View>
std::size_t offset_of(const View& view, std::int64_t batch, std::int64_t head, std::int64_t token) {
    const auto* const data = static_cast<const std::byte*>(view.data);
    return static_cast<std::size_t>(data - far_away()) +
           static_cast<std::size_t>(2 * (batch * view.strides.batch + head * view.strides.head +
                                         token * view.strides.token));
}

TEST_CASE("hunt: every length comes, and of everything else enough") {
    Random random(1);
    std::set<std::int64_t> lengths;
    std::map<std::string, int> seen;
    constexpr int CASES = 3 * HUNT_LENGTHS;
    for (std::int64_t n = 0; n < CASES; ++n) {
        const HuntCase c = hunt_case(n, random);
        const AttentionProblem& p = c.problem;
        if (n < HUNT_LENGTHS) lengths.insert(p.len_q);
        seen["step"] += c.step != HuntCase::LAST && c.step != HuntCase::PAIRED;
        seen["pairs"] += c.step == HuntCase::PAIRED;
        seen["pairs, other length"] += c.step == HuntCase::PAIRED && p.len_q != p.len_kv;
        seen["causal"] += p.causal;
        seen["other length"] += p.len_q != p.len_kv;
        seen["128 channels"] += p.head_dim == 128;
        seen["below 64"] += p.head_dim < 64;
        seen["padded rows"] += p.head_dim % 8 != 0;
        seen["grouped heads"] += p.heads_q != p.heads_kv;
        seen["one head"] += p.batch * p.heads_q == 1;
        seen["many heads"] += p.batch * p.heads_q > 100;
        seen["fp16"] += p.dtype == DType::f16;
        seen["scale below 0"] += p.scale && *p.scale < 0;
        seen["scale 0"] += p.scale && *p.scale == 0;
        seen["heads first"] += c.layout == HuntLayout::heads_first;
        seen["tokens first"] += c.layout == HuntLayout::tokens_first;
        seen["packed"] += c.layout == HuntLayout::packed;
        seen["graph"] += c.in_graph;
        seen["delayed"] += c.delayed;
        seen["delayed, last kernel, 128"] +=
            c.delayed && c.step == HuntCase::LAST && p.head_dim > 64;
        seen["delayed, pairs, 128"] += c.delayed && c.step == HuntCase::PAIRED && p.head_dim > 64;
        seen["delayed, last kernel, 64"] +=
            c.delayed && c.step == HuntCase::LAST && p.head_dim <= 64;
    }
    CHECK(lengths.size() == 1025);
    CHECK(*lengths.begin() == 1);
    CHECK(*lengths.rbegin() == 2049);
    CHECK(seen.size() == 22);
    for (const auto& entry : seen) {
        const int count = entry.second;
        CAPTURE(entry.first);
        CHECK(count >= CASES / 64);
        CHECK(count <= CASES - CASES / 8);
    }
}

TEST_CASE("hunt: every size of the last kernels comes") {
    Random random(1);
    std::map<std::string, int> seen;
    for (std::int64_t n = 0; n < 3 * HUNT_LENGTHS; ++n) {
        const HuntCase c = hunt_case(n, random);
        if (c.step != HuntCase::LAST) continue;
        const auto note = [&](const auto&... option) {
            const auto one = [&]<class Config>(const SizeOption<Config>& size) {
                HopperKernel::with_config(c.problem, Multiprocessor::COUNT, [&]<class Chosen>() {
                    if (std::is_same_v<Chosen, Config>)
                        ++seen[fmt::format("{} {}", name_of(c.problem.dtype), size.name)];
                });
            };
            (one(option), ...);
        };
        std::apply(note, options64<Rescale::rare>());
        std::apply(note, options64<Rescale::lazy>());
        std::apply(note, options128<Rescale::rare>());
        std::apply(note, options128<Rescale::lazy>());
    }
    CHECK(seen.size() == 15);  // fp16 has no "wide64"
    for (const auto& entry : seen) {
        const int count = entry.second;
        CAPTURE(entry.first);
        CHECK(count >= 5);
    }
}

TEST_CASE("hunt: no case is refused, and tensors lie apart on one grid of rows") {
    Random random(2);
    for (std::int64_t n = 0; n < 3 * HUNT_LENGTHS; ++n) {
        const HuntCase c = hunt_case(n, random);
        const AttentionProblem& p = c.problem;
        CAPTURE(describe(c));
        validate(p);
        CHECK(hopper_why_unsupported(
                  p, c.step == HuntCase::LAST || c.step == HuntCase::PAIRED ? 128 : 64, 64) == "");
        const HuntTensors laid_out = lay_out(c, far_away());
        const AttentionTensors& t = laid_out.tensors;
        CHECK_NOTHROW(validate(p, t));
        CHECK(tma_why_unsupported(p, t) == "");
        CHECK(laid_out.bytes() == lay_out(c, nullptr).bytes());
        CHECK(laid_out.bytes() < std::size_t{4} << 30);
        CHECK(laid_out.outputs == far_away() + laid_out.input_bytes);
        const auto row = static_cast<std::size_t>(2 * laid_out.row_elements);
        CHECK(laid_out.input_bytes % row == 0);

        // Corners: on the grid, apart, and within what is theirs.
        std::set<std::size_t> rows;
        std::size_t corners = 0;
        const auto look = [&](const auto& view, std::size_t first, std::size_t end) {
            const Shape& s = view.shape;
            for (const std::int64_t b : std::set{std::int64_t{0}, s.batch - 1})
                for (const std::int64_t h : std::set{std::int64_t{0}, s.heads - 1})
                    for (const std::int64_t i : std::set{std::int64_t{0}, s.tokens - 1}) {
                        const std::size_t at = offset_of(view, b, h, i);
                        CHECK(at % row == 0);
                        CHECK(at >= first);
                        CHECK(at + row <= end);
                        rows.insert(at);
                        ++corners;
                    }
        };
        look(t.q, 0, laid_out.input_bytes);
        look(t.k, 0, laid_out.input_bytes);
        look(t.v, 0, laid_out.input_bytes);
        look(t.o, laid_out.input_bytes, laid_out.bytes());
        CHECK(rows.size() == corners);
        const auto lse =
            static_cast<std::size_t>(reinterpret_cast<std::byte*>(t.lse.data) - far_away());
        CHECK(lse > *rows.rbegin());
        CHECK(lse + static_cast<std::size_t>(4 * p.batch * p.heads_q * p.len_q) <=
              laid_out.bytes());
        if (c.layout == HuntLayout::packed) {
            CHECK(t.k.strides == t.v.strides);
            CHECK(offset_of(t.v, 0, 0, 0) - offset_of(t.k, 0, 0, 0) ==
                  static_cast<std::size_t>(p.heads_kv) * row);
        }
    }
}

TEST_CASE("hunt: the sum of two") {
    HuntBag a, b;
    a.processes = 1, a.cases = 5, a.launches = 40, a.delayed_launches = 8, a.rows = 10;
    a.worst = 0.25;
    b.processes = 2, b.failed_processes = 1, b.graph_launches = 3, b.differing = 4, b.wrong = 1;
    b.worst = 2, b.first_fault = "case 7";
    HuntBag sum = a;
    sum += b;
    CHECK(sum.json() == nlohmann::ordered_json::parse(R"({
        "processes": 3, "failed_processes": 1, "cases": 5, "launches": 40, "delayed_launches": 8,
        "graph_launches": 3, "rows": 10, "differing": 4, "wrong": 1, "worst": 2.0,
        "first_fault": "case 7"})"));
    CHECK(HuntBag::from_json(sum.json()).json() == sum.json());
    auto unknown = a.json();
    unknown["worst"] = nullptr;  // as NaN is written
    sum += HuntBag::from_json(unknown);
    CHECK(sum.worst != sum.worst);
    CHECK_THROWS_AS(HuntBag::from_json({{"cases", 1}}), nlohmann::json::exception);
}

TEST_CASE("hunt: what becomes of a process is seen") {
    const testing::TemporaryDirectory folder;
    const auto json = folder.path() / "hunt.json";
    const auto run = [&](const std::string& script, int limit_ms = 20000) {
        std::filesystem::remove(json);
        return hunt_in_process({"/bin/sh", "-c", script}, json,
                               std::chrono::milliseconds(limit_ms));
    };
    HuntBag seen;
    seen.cases = 3, seen.launches = 24;
    const std::string writes =
        "echo '" + nlohmann::ordered_json{{"hunt", seen.json()}}.dump() + "' > " + json.string();

    const HuntBag good = run(writes);
    CHECK(good.processes == 1);
    CHECK(good.failed_processes == 0);
    CHECK(good.launches == 24);
    CHECK(good.first_fault == "");

    const auto failed = [&](const std::string& script, const std::string& fault,
                            std::int64_t launches, int limit_ms = 20000) {
        CAPTURE(script);
        const HuntBag bag = run(script, limit_ms);
        CHECK(bag.processes == 1);
        CHECK(bag.failed_processes == 1);
        CHECK(bag.launches == launches);
        CHECK(bag.first_fault == fault);
    };
    failed(writes + "; exit 1", "exit status 1", 24);
    failed("exit 3", "exit status 3", 0);
    failed("kill -KILL $$", "ended by signal 9, Killed", 0);
    failed("exec sleep 60", "no end after 200 ms", 0, 200);
    failed("exit 0", "no results", 0);
    CHECK(run("echo nonsense > " + json.string()).failed_processes == 1);
    seen.first_fault = "case 2: wrong";
    failed("echo '" + nlohmann::ordered_json{{"hunt", seen.json()}}.dump() + "' > " +
               json.string() + "; exit 1",
           "case 2: wrong", 24);
    CHECK_THROWS_AS(hunt_in_process({"/no/such/program"}, json, std::chrono::seconds(1)),
                    std::system_error);
}

}  // namespace
}  // namespace fa
