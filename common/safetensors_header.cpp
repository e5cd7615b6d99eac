// The header of a safetensors file: parsed, and every number in it checked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/json_events.h"
#include "common/printable.h"
#include "common/safetensors.h"

namespace fa {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Bits of one element, for every dtype of the format. Tensors that we cannot read as fp32 are
/// checked all the same: one wrong range makes the whole file suspect.
constexpr std::array<std::pair<std::string_view, unsigned>, 22> DTYPE_BITS = {{
    {"BOOL", 8},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16},        {"F16", 16},        {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64},    {"U64", 64},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
}};

/// Collects the tensors and the metadata from the events of the JSON parser. The form is
/// { name: {"dtype": string, "shape": [n, …], "data_offsets": [begin, end]}, …,
///   "__metadata__": {string: string, …} }.
class HeaderReader : public JsonEvents {
  public:
    HeaderReader(const std::string& source, SafetensorsHeader& header)
        : source_(source), header_(header) {}

    bool start_object(std::size_t) override {
        switch (place_) {
            case Place::start: place_ = Place::top; return true;
            case Place::tensor_value: place_ = Place::tensor; return true;
            case Place::metadata_value: place_ = Place::metadata; return true;
            default: refuse("has an unexpected object");
        }
    }

    bool key(string_t& name) override {
        switch (place_) {
            case Place::top:
                if (name == "__metadata__") {
                    if (std::exchange(has_metadata_, true)) refuse("has \"__metadata__\" twice");
                    place_ = Place::metadata_value;
                } else {
                    header_.tensors.emplace_back().name = name;
                    has_dtype_ = has_shape_ = has_offsets_ = false;
                    place_ = Place::tensor_value;
                }
                return true;
            case Place::tensor:
                if (name == "dtype") return enter_once(Place::dtype_value, has_dtype_, name);
                if (name == "shape") return enter_once(Place::shape_value, has_shape_, name);
                if (name == "data_offsets")
                    return enter_once(Place::offsets_value, has_offsets_, name);
                refuse("has the unknown key " + printable(name));
            case Place::metadata:
                if (header_.metadata.contains(name)) refuse("has " + printable(name) + " twice");
                metadata_key_ = name;
                place_ = Place::metadata_string;
                return true;
            default: refuse("has an unexpected key");
        }
    }

    bool string(string_t& value) override {
        if (place_ == Place::dtype_value) {
            current().dtype = value;
            place_ = Place::tensor;
        } else if (place_ == Place::metadata_string) {
            header_.metadata.emplace(std::move(metadata_key_), value);
            place_ = Place::metadata;
        } else {
            refuse("has an unexpected string");
        }
        return true;
    }

    bool start_array(std::size_t) override {
        offsets_ = 0;
        switch (place_) {
            case Place::shape_value: place_ = Place::shape; return true;
            case Place::offsets_value: place_ = Place::offsets; return true;
            default: refuse("has an unexpected array");
        }
    }

    bool number_unsigned(number_unsigned_t n) override {
        if (place_ == Place::shape) {
            if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                refuse(fmt::format("has a dimension of {}", n));
            if (current().shape.size() == MAX_SAFETENSORS_RANK)
                refuse(fmt::format("has more than {} dimensions", MAX_SAFETENSORS_RANK));
            current().shape.push_back(static_cast<std::int64_t>(n));
        } else if (place_ == Place::offsets && offsets_ < 2) {
            (offsets_++ == 0 ? current().begin : current().end) = n;
        } else if (place_ == Place::offsets) {
            refuse("has more than 2 data_offsets");
        } else {
            refuse(fmt::format("has the unexpected number {}", n));
        }
        return true;
    }

    bool end_array() override {
        if (place_ == Place::offsets && offsets_ != 2)
            refuse(fmt::format("has {} data_offsets, expected 2", offsets_));
        place_ = Place::tensor;
        return true;
    }

    bool end_object() override {
        switch (place_) {
            case Place::tensor:
                if (!has_dtype_) refuse("has no dtype");
                if (!has_shape_) refuse("has no shape");
                if (!has_offsets_) refuse("has no data_offsets");
                place_ = Place::top;
                return true;
            case Place::metadata: place_ = Place::top; return true;
            default: place_ = Place::end; return true;
        }
    }

  protected:
    std::string subject() const override {
        switch (place_) {
            case Place::start:
            case Place::top:
            case Place::end: return source_ + ": header";
            case Place::metadata_value:
            case Place::metadata:
            case Place::metadata_string: return source_ + ": \"__metadata__\"";
            default: return source_ + ": tensor " + printable(header_.tensors.back().name);
        }
    }

  private:
    /// Where in the form the parser is: before a value of a certain key, or inside one.
    enum class Place {
        start,
        top,
        tensor_value,
        tensor,
        dtype_value,
        shape_value,
        shape,
        offsets_value,
        offsets,
        metadata_value,
        metadata,
        metadata_string,
        end
    };

    StoredTensor& current() { return header_.tensors.back(); }
    bool enter_once(Place place, bool& seen, const std::string& name) {
        if (std::exchange(seen, true)) refuse("has " + printable(name) + " twice");
        place_ = place;
        return true;
    }

    const std::string& source_;
    SafetensorsHeader& header_;
    Place place_ = Place::start;
    std::string metadata_key_;
    int offsets_ = 0;
    bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

/// Bytes that shape and dtype ask for; nothing if that is no whole number below 2^64.
std::optional<std::uint64_t> bytes_of(const StoredTensor& tensor, unsigned bits) {
    std::uint64_t size = bits;
    for (const std::int64_t extent : tensor.shape)
        if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size))
            return std::nullopt;
    if (size % 8 != 0) return std::nullopt;
    return size / 8;
}

/// One tensor by itself: dtype, shape and offsets agree with each other and lie within the data.
void check_tensor(const StoredTensor& t, std::uint64_t data_size, const std::string& source) {
    const auto refuse = [&](const std::string& what) {
        throw std::runtime_error(fmt::format("{}: tensor {}: {}", source, printable(t.name), what));
    };
    const auto dtype = std::find_if(DTYPE_BITS.begin(), DTYPE_BITS.end(),
                                    [&](const auto& entry) { return entry.first == t.dtype; });
    if (dtype == DTYPE_BITS.end()) refuse("unknown dtype " + printable(t.dtype));
    if (t.begin > t.end) refuse(fmt::format("data_offsets [{}, {}] are reversed", t.begin, t.end));
    if (t.end > data_size)
        refuse(fmt::format("data_offsets [{}, {}] pass the end of the file's {} data bytes",
                           t.begin, t.end, data_size));
    const auto bytes = bytes_of(t, dtype->second);
    if (!bytes)
        refuse(fmt::format("shape [{}] of {} is no number of bytes below 2^64",
                           fmt::join(t.shape, ", "), t.dtype));
    if (*bytes != t.end - t.begin)
        refuse(fmt::format("shape [{}] of {} takes {} bytes, data_offsets [{}, {}] hold {}",
                           fmt::join(t.shape, ", "), t.dtype, *bytes, t.begin, t.end,
                           t.end - t.begin));
}

/// All tensors together: one after the other from the first data byte to the last, names unique.
void check_layout(const std::vector<StoredTensor>& tensors, std::uint64_t data_size,
                  const std::string& source) {
    std::vector<std::string_view> names(tensors.size());
    std::transform(tensors.begin(), tensors.end(), names.begin(),
                   [](const StoredTensor& t) { return std::string_view(t.name); });
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
        throw std::runtime_error(
            fmt::format("{}: header has tensor {} twice", source, printable(*twice)));

    std::uint64_t position = 0;
    for (const StoredTensor& t : tensors) {
        if (t.begin != position)
            throw std::runtime_error(fmt::format(
                "{}: tensor {}: data_offsets [{}, {}] {}, the tensor before it ends at {}", source,
                printable(t.name), t.begin, t.end, t.begin < position ? "overlap" : "leave a hole",
                position));
        position = t.end;
    }
    if (position != data_size)
        throw std::runtime_error(
            fmt::format("{}: {} bytes follow the last tensor, which ends at data byte {}", source,
                        data_size - position, position));
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& source) {
    std::uint64_t length = 0;
    if (file.size() < sizeof length)
        throw std::runtime_error(fmt::format(
            "{}: {} bytes are too few for a safetensors file, which starts with an 8-byte length",
            source, file.size()));
    std::memcpy(&length, file.data(), sizeof length);
    file = file.subspan(sizeof length);
    if (length > file.size())
        throw std::runtime_error(
            fmt::format("{}: header length {} passes the end of the file, {} bytes follow it",
                        source, length, file.size()));
    if (length > MAX_SAFETENSORS_HEADER)
        throw std::runtime_error(fmt::format("{}: header length {} is above the limit of {} bytes",
                                             source, length, MAX_SAFETENSORS_HEADER));

    const std::string_view text(reinterpret_cast<const char*>(file.data()),
                                static_cast<std::size_t>(length));
    if (!text.starts_with('{'))
        throw std::runtime_error(
            fmt::format("{}: header is no JSON object: it does not start with {{", source));

    SafetensorsHeader header;
    header.data_start = sizeof length + length;
    HeaderReader(source, header).parse(text);

    const std::uint64_t data_size = file.size() - length;
    for (const StoredTensor& tensor : header.tensors) check_tensor(tensor, data_size, source);
    // Empty tensors lie between others: they sort before the one that begins where they do.
    std::stable_sort(header.tensors.begin(), header.tensors.end(),
                     [](const StoredTensor& a, const StoredTensor& b) {
                         return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                     });
    check_layout(header.tensors, data_size, source);
    return header;
}

}  // namespace fa
