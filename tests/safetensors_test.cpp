// The reader of safetensors files: what is read, and everything that must be refused.
#include "common/safetensors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "common/half.h"
#include "tests/refusal.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string bytes_of(const std::vector<std::uint16_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint16_t)};
}

/// What parse_safetensors_header() says of a file; empty if it accepts it.
std::string refused(std::string_view file) {
    return refusal([&] { parse_safetensors_header(as_bytes(file), "model.safetensors"); });
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/// Checks that a file is refused in one line that names the file and has `words` in it.
void check_refused(std::string_view file, std::string_view words) {
    const std::string message = refused(file);
    CAPTURE(message);
    CAPTURE(words);
    CHECK(one_line(message));
    CHECK(message.starts_with("model.safetensors: "));
    CHECK(contains(message, words));
}

}  // namespace

TEST_CASE("F32, F16 and BF16 tensors are read exactly, in any order and with metadata") {
    const std::vector<float> values = {0.0f,      -0.0f,    1.5f,
                                       -65504.0f, 0x1p-24f, std::numeric_limits<float>::infinity()};
    std::vector<std::uint16_t> half, brain;
    for (const float v : values) {
        half.push_back(to_float16_bits(v));
        brain.push_back(to_bfloat16_bits(v));
    }
    const TemporaryDirectory directory;
    const auto path = directory.write(
        "model.safetensors",
        safetensors(R"({"brain":{"data_offsets":[36,48],"shape":[6],"dtype":"BF16"},)"
                    R"("__metadata__":{"format":"pt","":"\u00e9"},)"
                    R"("full":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                    R"("half":{"dtype":"F16","shape":[1,6,1],"data_offsets":[24,36]}})",
                    bytes_of(values) + bytes_of(half) + bytes_of(brain)));
    const SafetensorsFile file(path);

    REQUIRE(file.tensors().size() == 3);
    CHECK(file.tensors()[0].name == "full");  // in the order of their bytes
    CHECK(file.tensors()[1].name == "half");
    CHECK(file.tensors()[2].name == "brain");
    CHECK(file.metadata() == std::map<std::string, std::string>{{"", "é"}, {"format", "pt"}});
    CHECK(file.tensor("half").shape == std::vector<std::int64_t>{1, 6, 1});
    CHECK(file.tensor("half").count() == 6);
    CHECK(file.contains("full"));
    CHECK_FALSE(file.contains("__metadata__"));
    CHECK_FALSE(file.contains("ful"));

    const auto bits = [](const std::vector<float>& v) { return bytes_of(v); };
    CHECK(bits(file.read_f32("full")) == bits(values));
    CHECK(bits(file.read_f32("half")) == bits(values));
    std::vector<float> rounded;  // 65504 has more digits than bfloat16
    for (const std::uint16_t b : brain) rounded.push_back(from_bfloat16_bits(b));
    CHECK(bits(file.read_f32("brain")) == bits(rounded));

    std::vector<float> mine(6);
    file.read_f32("full", mine);
    CHECK(bits(mine) == bits(values));
}

TEST_CASE("Every value of the 16-bit types is widened exactly, NaN included") {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const TemporaryDirectory directory;
    for (const std::string dtype : {"F16", "BF16"}) {
        const auto path = directory.write(
            dtype, safetensors(fmt::format(R"({{"a":{{"dtype":"{}","shape":[65536],)"
                                           R"("data_offsets":[0,131072]}}}})",
                                           dtype),
                               bytes_of(all)));
        const auto values = SafetensorsFile(path).read_f32("a");
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            // Independent of the reader's own conversion: sign, exponent and fraction by
            // arithmetic.
            const bool f16 = dtype == "F16";
            const int fraction_bits = f16 ? 10 : 7, bias = f16 ? 15 : 127;
            const int exponent = static_cast<int>((i & 0x7fff) >> fraction_bits);
            const int largest = f16 ? 31 : 255;
            const double fraction =
                static_cast<double>(i & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
            double expected = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                            : std::ldexp(1 + fraction, exponent - bias);
            if (exponent == largest)
                expected = fraction == 0 ? std::numeric_limits<double>::infinity()
                                         : std::numeric_limits<double>::quiet_NaN();
            const double sign = i & 0x8000 ? -1 : 1;
            const auto value = static_cast<double>(values[i]);
            wrong += std::isnan(expected)
                         ? !std::isnan(value)
                         : !(value == sign * expected && std::signbit(value) == std::signbit(sign));
        }
        CAPTURE(dtype);
        CHECK(wrong == 0);
    }
}

TEST_CASE("Data may start at any byte: 0 to 7 spaces after the header change nothing") {
    const std::vector<float> values = {1.0f, -2.5f, 3.25f};
    const std::string header = R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
                               R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]}})";
    const std::vector<std::uint16_t> brain = {0x3f80, 0xc020, 0x4050};  // the same three numbers
    const TemporaryDirectory directory;
    for (std::size_t spaces = 0; spaces < 8; ++spaces) {
        CAPTURE(spaces);
        const SafetensorsFile file(directory.write(
            fmt::format("{}.safetensors", spaces),
            safetensors(header + std::string(spaces, ' '), bytes_of(values) + bytes_of(brain))));
        CHECK(file.read_f32("a") == values);
        CHECK(file.read_f32("b") == values);
    }
}

TEST_CASE("Scalars, empty tensors and files without tensors are valid") {
    const TemporaryDirectory directory;
    const SafetensorsFile file(directory.write(
        "a.safetensors", safetensors(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                     R"("e":{"dtype":"F32","shape":[7,0],"data_offsets":[4,4]},)"
                                     R"("f":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}})",
                                     bytes_of(std::vector<float>{42.0f}))));
    CHECK(file.read_f32("s") == std::vector<float>{42.0f});
    CHECK(file.read_f32("e").empty());
    CHECK(refused(safetensors("{}", "")) == "");
    CHECK(refused(safetensors(R"({"__metadata__":{}}  )", "")) == "");
}

TEST_CASE("Each dtype of the format has its size") {
    struct Size {
        const char* dtype;
        std::size_t bits_of_8;
    };
    constexpr Size SIZES[] = {
        {"BOOL", 64},        {"U8", 64},          {"I8", 64},   {"F8_E5M2", 64}, {"F8_E4M3", 64},
        {"F8_E8M0", 64},     {"I16", 128},        {"U16", 128}, {"F16", 128},    {"BF16", 128},
        {"I32", 256},        {"U32", 256},        {"F32", 256}, {"F64", 512},    {"I64", 512},
        {"U64", 512},        {"C64", 512},        {"F4", 32},   {"F6_E2M3", 48}, {"F6_E3M2", 48},
        {"F8_E4M3FNUZ", 64}, {"F8_E5M2FNUZ", 64},
    };
    for (const Size& size_of : SIZES) {
        CAPTURE(size_of.dtype);
        const std::size_t bytes = size_of.bits_of_8 / 8;
        const auto file = [&](std::size_t size) {
            return safetensors(fmt::format(R"({{"a":{{"dtype":"{}","shape":[2,4],)"
                                           R"("data_offsets":[0,{}]}}}})",
                                           size_of.dtype, size),
                               std::string(size, 'x'));
        };
        CHECK(refused(file(bytes)) == "");
        check_refused(file(bytes + 1), fmt::format("takes {} bytes", bytes));
    }
    check_refused(safetensors(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "xx"),
                  "no number of bytes");
}

TEST_CASE("A file shorter than its header length says is refused") {
    check_refused("", "0 bytes are too few");
    check_refused("\x02\0\0\0\0\0\0", "too few");
    check_refused(std::string(7, '\0'), "7 bytes are too few");
    check_refused(std::string(8, '\0'), "no JSON object");
    check_refused(length_bytes(1), "header length 1 passes the end");
    check_refused(length_bytes(0x7fffffffffffffff) + "{}", "9223372036854775807 passes the end");
    check_refused(length_bytes(0xffffffffffffffff) + "{}", "passes the end");
    check_refused(length_bytes(10) + "{}", "header length 10 passes the end");  // = the file's size
    check_refused(length_bytes(3) + "{}", "header length 3 passes the end");
    check_refused(
        length_bytes(MAX_SAFETENSORS_HEADER + 1) + std::string(MAX_SAFETENSORS_HEADER + 1, ' '),
        "above the limit");
}

TEST_CASE("A header that is not the JSON of the format is refused") {
    struct Bad {
        const char *header, *words;
    };
    constexpr Bad BAD[] = {
        {"[]", "no JSON object"},
        {"null", "no JSON object"},
        {"1", "no JSON object"},
        {" {}", "no JSON object"},
        {"\xef\xbb\xbf{}", "no JSON object"},
        {"{", "not JSON"},
        {"{]", "not JSON"},
        {"{}{}", "not JSON"},
        {"{} x", "not JSON"},
        {"{'a':1}", "not JSON"},
        {"{\"a\xff\":1}", "not JSON"},
        {"{\"a\xed\xa0\x80\":1}", "not JSON"},
        {R"({"a\ud800":1})", "not JSON"},
        {"{\"a\n\":1}", "not JSON"},
        {R"({"a":1})", R"(tensor "a" has the unexpected number 1)"},
        {R"({"a":null})", R"(tensor "a" has an unexpected null)"},
        {R"({"a":true})", R"(tensor "a")"},
        {R"({"a":"F32"})", R"(tensor "a" has an unexpected string)"},
        {R"({"a":[]})", R"(tensor "a" has an unexpected array)"},
        {R"({"a":{}})", R"(tensor "a")"},
        {R"({"a":{"dtype":"F32","shape":[]}})", "has no data_offsets"},
        {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "has no shape"},
        {R"({"a":{"shape":[],"data_offsets":[0,4]}})", "has no dtype"},
        {R"({"a":{"dtype":4,"shape":[],"data_offsets":[0,4]}})", "number 4"},
        {R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", "unexpected object"},
        {R"({"a":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", "number 4"},
        {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "unexpected array"},
        {R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", "unexpected string"},
        {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "negative number -1"},
        {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "no 64-bit integer: 1.0"},
        {R"({"a":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}})", "no 64-bit integer"},
        {R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]}})",
         "no 64-bit integer: 18446744073709551616"},
        {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})",
         "dimension of 9223372036854775808"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "1 data_offsets"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[]}})", "0 data_offsets"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", "more than 2"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", "negative number -4"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"dtype":"F32"}})",
         R"(has "dtype" twice)"},
        {R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})",
         R"(has "shape" twice)"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", R"(unknown key "x")"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
         R"("a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
         R"(tensor "a" twice)"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
         R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
         R"(tensor "a" twice)"},
        {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", R"(unknown dtype "F33")"},
        {R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", R"(unknown dtype "f32")"},
        {R"({"__metadata__":[]})", "\"__metadata__\" has an unexpected array"},
        {R"({"__metadata__":{"a":1}})", "\"__metadata__\" has the unexpected number 1"},
        {R"({"__metadata__":{"a":"","a":""}})", R"(has "a" twice)"},
        {R"({"__metadata__":{},"__metadata__":{}})", "twice"},
    };
    for (const Bad& bad : BAD) {
        CAPTURE(bad.header);
        check_refused(safetensors(bad.header, "1234"), bad.words);
    }
    check_refused(safetensors(std::string("{}\0{", 4), ""), "zero byte at offset 2");
    check_refused(safetensors(std::string("{\"\0\":1}", 7), ""), "zero byte at offset 2");
}

TEST_CASE("Ranges that do not tile the data are refused") {
    const auto tensor = [](const char* name, int begin, int end) {
        return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name,
                           end > begin ? end - begin : 0, begin, end);
    };
    const auto file = [&](std::initializer_list<std::string> tensors) {
        return safetensors(fmt::format("{{{}}}", fmt::join(tensors, ",")), "12345678");
    };
    CHECK(refused(file({tensor("b", 3, 8), tensor("a", 0, 3)})) == "");
    CHECK(refused(file({tensor("b", 3, 3), tensor("a", 0, 3), tensor("c", 3, 8)})) == "");

    check_refused(file({tensor("a", 0, 3), tensor("b", 4, 8)}),
                  R"("b": data_offsets [4, 8] leave a hole)");
    check_refused(file({tensor("a", 1, 8)}), "leave a hole");
    check_refused(file({tensor("a", 0, 4), tensor("b", 3, 8)}),
                  R"("b": data_offsets [3, 8] overlap)");
    check_refused(file({tensor("a", 0, 8), tensor("b", 0, 8)}), "overlap");
    check_refused(file({tensor("a", 0, 8), tensor("b", 2, 2)}), "overlap");
    check_refused(file({tensor("a", 0, 7)}), "1 bytes follow the last tensor");
    check_refused(file({}), "8 bytes follow");
    check_refused(file({tensor("a", 0, 9)}), "pass the end of the file's 8 data bytes");
    check_refused(file({tensor("a", 0, 4), tensor("b", 8, 4)}),
                  R"("b": data_offsets [8, 4] are reversed)");
    check_refused(safetensors(R"({"a":{"dtype":"U8","shape":[8],)"
                              R"("data_offsets":[0,18446744073709551615]}})",
                              "12345678"),
                  "pass the end");
}

TEST_CASE("Byte counts that differ from shape and dtype are refused, overflow included") {
    const auto shape = [](const std::string& dimensions) {
        return safetensors(
            fmt::format(R"({{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,8]}}}})",
                        dimensions),
            "12345678");
    };
    CHECK(refused(shape("2")) == "");
    CHECK(refused(shape("1,2,1")) == "");
    check_refused(shape("3"),
                  R"(tensor "w": shape [3] of F32 takes 12 bytes, data_offsets [0, 8] hold 8)");
    check_refused(shape(""), "takes 4 bytes");
    check_refused(shape("2,0"), "takes 0 bytes");
    // Products that come back to 8 bytes modulo 2^64 or 2^32.
    check_refused(shape("4611686018427387906"), "below 2^64");
    check_refused(shape("4294967296,4294967296"), "below 2^64");
    check_refused(shape("2147483648,2147483649,2"), "below 2^64");
    check_refused(shape("1073741826"), "takes 4294967304 bytes");
    std::string ones = "2";
    for (std::size_t i = 1; i < MAX_SAFETENSORS_RANK; ++i) ones += ",1";
    CHECK(refused(shape(ones)) == "");
    check_refused(shape(ones + ",1"), "more than 64 dimensions");
}

TEST_CASE("Every truncation of a valid file is refused") {
    const std::string file =
        safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                    "123456789012");
    REQUIRE(refused(file) == "");
    for (std::size_t size = 0; size < file.size(); ++size) {
        CAPTURE(size);
        // A copy of exactly that size lets AddressSanitizer see a read past its end.
        const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
        CHECK(one_line(refused({cut.data(), cut.size()})));
    }
    check_refused(file.substr(0, file.size() - 1),
                  R"(tensor "b": data_offsets [8, 12] pass the end)");
    check_refused(file + "x", "1 bytes follow");
}

TEST_CASE("A name from the file cannot disturb the terminal or flood it") {
    const std::string control = refused(safetensors(R"({"\u001b[2J\n\"\\":1})", ""));
    CHECK(one_line(control));
    CHECK(contains(control, R"("\x1b[2J\x0a\x22\x5c")"));
    check_refused(safetensors("{\"" + std::string(100000, 'n') + "\":1}", ""), "…");
    check_refused(safetensors("{\"a\":" + std::string(100000, '7') + "}", ""), "");
    check_refused(safetensors("{\"a\":" + std::string(100000, 'x') + "}", ""), "not JSON");
}

TEST_CASE("Missing tensors, other shapes and other dtypes are named") {
    const TemporaryDirectory directory;
    const auto path = directory.write(
        "m.safetensors",
        safetensors(R"({"h.0.w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                    R"("i":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})",
                    std::string(16, '\0')));
    const SafetensorsFile file(path);
    const std::array<std::int64_t, 2> right = {2, 1}, wrong = {1, 2};
    const std::array<std::int64_t, 1> one = {1};
    CHECK(file.read_f32("h.0.w", right) == std::vector<float>(2));
    CHECK(refusal([&] { file.read_f32("h.7.mlp.c_fc.bias"); }) ==
          path.string() + R"(: there is no tensor "h.7.mlp.c_fc.bias")");
    CHECK(refusal([&] { file.read_f32("h.0.w", wrong); }) ==
          path.string() + R"(: tensor "h.0.w" has shape [2, 1], expected [1, 2])");
    CHECK(refusal([&] { file.expect("h.0.w", one); }) ==
          path.string() + R"(: tensor "h.0.w" has shape [2, 1], expected [1])");
    CHECK(refusal([&] { file.read_f32("i", one); }) ==
          path.string() + R"(: tensor "i" is of I64, expected F32, F16 or BF16)");
    CHECK(contains(refusal([&] { file.read_f32("i"); }), "is of I64"));
    std::vector<float> three(3);
    CHECK(refusal([&] { file.read_f32("h.0.w", three); }) ==
          path.string() + R"(: tensor "h.0.w" has 2 elements, the destination 3)");
}

TEST_CASE("What is no regular file is refused") {
    const TemporaryDirectory directory;
    const auto missing = directory.path() / "missing", pipe = directory.path() / "pipe";
    CHECK(refusal([&] { SafetensorsFile{missing}; }) ==
          missing.string() + ": cannot be read: No such file or directory");
    CHECK(contains(refusal([&] { SafetensorsFile{directory.path()}; }), "not a regular file"));
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(
        contains(refusal([&] { SafetensorsFile{pipe}; }), "not a regular file"));  // and no waiting
    const auto empty = directory.write("empty", "");
    CHECK(contains(refusal([&] { SafetensorsFile{empty}; }), "0 bytes are too few"));
}

TEST_CASE("Hostile headers are refused quickly and with little memory") {
    const TemporaryDirectory directory;
    const auto refused_file = [&](const std::string& name) {
        return refusal([&] { SafetensorsFile{directory.path() / name}; });
    };

    // A sparse file of 1 TB whose header says it is nearly as long. (Some file systems cannot.)
    const auto huge = directory.write("huge", length_bytes((1ull << 40) - 8));
    std::error_code error;
    std::filesystem::resize_file(huge, 1ull << 40, error);
    if (!error) CHECK(contains(refused_file("huge"), "above the limit"));

    // Headers of the largest size allowed.
    const auto fill = [](std::string text, std::string_view unit, std::string_view end) {
        while (text.size() + unit.size() + end.size() <= MAX_SAFETENSORS_HEADER) text += unit;
        return text.append(end);
    };
    const auto many_tensors = [] {
        std::string text = "{";
        for (int i = 0; text.size() + 80 < MAX_SAFETENSORS_HEADER; ++i)
            text += fmt::format(R"("{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", i);
        text.back() = '}';
        return text;
    };
    const auto try_bomb = [&](const std::string& name, std::string header) {
        CAPTURE(name);
        directory.write("bomb", safetensors(header, "x"));
        // The child starts with its parent's memory: the header must be gone from it by then.
        header.clear();
        header.shrink_to_fit();
        const std::size_t peak = peak_resident_bytes([&] { refused_file("bomb"); });
        if (!sanitized()) CHECK(peak < 100'000'000);
        CHECK(one_line(refused_file("bomb")));
    };
    try_bomb("nested arrays", fill("{\"a\":", "[", ""));
    try_bomb("nested objects", fill("", "{\"a\":", ""));
    try_bomb("one long name", fill("{\"", "n", "\":1}"));
    try_bomb("one long number", fill("{\"a\":", "7", "}"));
    try_bomb("one long text", fill("{\"__metadata__\":{\"a\":\"", "m", "\"}}"));
    try_bomb("many dimensions", fill("{\"a\":{\"shape\":[1", ",1", "]}}"));
    try_bomb("many tensors", many_tensors());
    try_bomb("nothing but blanks", fill("{", " ", ""));
}
