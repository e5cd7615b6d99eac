#include "common/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "common/half.h"
#include "common/printable.h"

namespace fa {
namespace {

/// `out[i]` = widen(i-th element of `bytes`). Tensors start at any byte: the header's length
/// decides. memcpy reads them from there, and compiles to a plain load where the processor allows
/// that.
template <class Stored, class Widen>
void read_elements(const std::byte* bytes, std::span<float> out, Widen widen) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        Stored element;
        std::memcpy(&element, bytes + i * sizeof element, sizeof element);
        out[i] = widen(element);
    }
}

bool readable_as_f32(const StoredTensor& tensor) {
    return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16";
}

}  // namespace

std::int64_t StoredTensor::count() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(path), header_(parse_safetensors_header(file_.bytes(), path.string())) {
    for (std::size_t i = 0; i < header_.tensors.size(); ++i)
        index_.emplace(header_.tensors[i].name, i);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
    if (const StoredTensor* found = find(name)) return *found;
    throw std::runtime_error(
        fmt::format("{}: there is no tensor {}", path_.string(), printable(name)));
}

const StoredTensor& SafetensorsFile::expect(std::string_view name,
                                            std::span<const std::int64_t> shape) const {
    const StoredTensor& found = tensor(name);
    if (!std::equal(found.shape.begin(), found.shape.end(), shape.begin(), shape.end()))
        throw std::runtime_error(fmt::format("{}: tensor {} has shape [{}], expected [{}]",
                                             path_.string(), printable(name),
                                             fmt::join(found.shape, ", "), fmt::join(shape, ", ")));
    if (!readable_as_f32(found))
        throw std::runtime_error(fmt::format("{}: tensor {} is of {}, expected F32, F16 or BF16",
                                             path_.string(), printable(name), found.dtype));
    return found;
}

std::vector<float> SafetensorsFile::read_f32(std::string_view name) const {
    const StoredTensor& stored = tensor(name);
    expect(name, stored.shape);  // before anything is allocated: other dtypes may be smaller
    std::vector<float> values(static_cast<std::size_t>(stored.count()));
    read_f32(name, values);
    return values;
}

std::vector<float> SafetensorsFile::read_f32(std::string_view name,
                                             std::span<const std::int64_t> shape) const {
    expect(name, shape);
    return read_f32(name);
}

void SafetensorsFile::read_f32(std::string_view name, std::span<float> out) const {
    const StoredTensor& stored = tensor(name);
    expect(name, stored.shape);
    if (out.size() != static_cast<std::size_t>(stored.count()))
        throw std::runtime_error(fmt::format("{}: tensor {} has {} elements, the destination {}",
                                             path_.string(), printable(name), stored.count(),
                                             out.size()));
    if (out.empty()) return;
    const std::byte* bytes =
        file_.bytes().subspan(static_cast<std::size_t>(header_.data_start + stored.begin)).data();
    if (stored.dtype == "F32")
        std::memcpy(out.data(), bytes, out.size_bytes());
    else if (stored.dtype == "F16")
        read_elements<std::uint16_t>(bytes, out, from_float16_bits);
    else
        read_elements<std::uint16_t>(bytes, out, from_bfloat16_bits);
}

}  // namespace fa
