// Any bytes as a safetensors file: refused with one line, or valid in every respect and readable.
#include <set>
#include <string>

#include "common/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/refusal.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

/// What every accepted file has in common, worked out anew from the table of tensors.
void check_accepted(std::string_view file, const SafetensorsHeader& header) {
    require(header.data_start >= 10 && header.data_start <= file.size(), "data_start in the file");
    std::uint64_t position = 0;
    std::set<std::string> names;
    for (const StoredTensor& tensor : header.tensors) {
        require(names.insert(tensor.name).second, "names are unique");
        require(tensor.begin == position && tensor.end >= tensor.begin, "tensors tile the data");
        position = tensor.end;
        for (const std::int64_t extent : tensor.shape) require(extent >= 0, "extents are >= 0");
        if (tensor.dtype == "F32")
            require(static_cast<std::uint64_t>(tensor.count()) * 4 == tensor.end - tensor.begin,
                    "bytes of F32");
    }
    require(header.data_start + position == file.size(), "the data end with the file");
}

/// Opens the bytes as a file and reads what can be read.
void read_everything(std::string_view file) {
    static const TemporaryDirectory directory;
    const SafetensorsFile opened(directory.write("fuzzed.safetensors", file));
    for (const StoredTensor& tensor : opened.tensors()) {
        require(opened.find(tensor.name) == &tensor, "find() finds each tensor");
        if (tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16")
            require(opened.read_f32(tensor.name).size() == static_cast<std::size_t>(tensor.count()),
                    "all elements are read");
    }
}

void try_file(std::string_view file) {
    SafetensorsHeader header;
    const std::string refused =
        refusal([&] { header = parse_safetensors_header(as_bytes(file), "fuzzed"); });
    if (!refused.empty()) {
        require(one_line(refused), "a refusal is one line");
        return;
    }
    check_accepted(file, header);
    read_everything(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = as_text(data, size);
    try_file(input);
    // Chance hardly ever hits a header length that fits. The second try supplies it: the header is
    // what ends with the last brace after the length, the rest is data.
    if (input.size() > 8) {
        const std::string_view rest = input.substr(8);
        const std::size_t header = rest.rfind('}') + 1;  // 0 if there is none
        try_file(safetensors(rest.substr(0, header), rest.substr(header)));
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    return {
        safetensors("{}", ""),
        safetensors(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],)"
                    R"("data_offsets":[0,8]}}  )",
                    "12345678"),
        safetensors(R"({"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                    R"("b":{"dtype":"F16","shape":[],"data_offsets":[6,8]},)"
                    R"("c":{"dtype":"I64","shape":[0],"data_offsets":[8,8]}})",
                    "12345678"),
        safetensors(R"({"\u00e9\n":{"dtype":"U8","shape":[1,1,1],"data_offsets":[0,1]}})", "x"),
        length_bytes(0x7fffffffffffffff) + "{}",
        safetensors("[]", ""),
    };
}
