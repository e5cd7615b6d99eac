#pragma once
/// @file
/// Reader of safetensors files, the format in which Hugging Face publishes weights: an 8-byte
/// little-endian header length, a JSON header, then the tensors' bytes one after the other
/// (https://github.com/huggingface/safetensors, section "Format").
///
/// Files come from the network, so nothing in them is believed: the whole header is checked before
/// a tensor can be read, and no allocation is larger than the bytes the file really has.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/mapped_file.h"

namespace fa {

/// Largest header this reader takes, in bytes: room for some 40,000 tensors, of which GPT-2 has
/// 160. The format allows 100,000,000, but a table of tensors takes several times the memory of its
/// JSON text, and a hostile file shall not make us use 100 MB.
constexpr std::uint64_t MAX_SAFETENSORS_HEADER = 4u << 20;

/// Largest number of dimensions of one tensor.
constexpr std::size_t MAX_SAFETENSORS_RANK = 64;

/// What the header says of one tensor. Values have been checked against each other and the file.
struct StoredTensor {
    std::string name;
    std::string dtype;                ///< as in the file: "F32", "F16", "BF16", "I64", …
    std::vector<std::int64_t> shape;  ///< outermost first, each >= 0; empty for a scalar
    std::uint64_t begin = 0;          ///< first byte, counted from the end of the header
    std::uint64_t end = 0;            ///< one past the last byte; end - begin = count × size

    /// Number of elements: the product of `shape`.
    std::int64_t count() const;
};

/// The checked contents of a header.
struct SafetensorsHeader {
    std::vector<StoredTensor> tensors;            ///< in the order of their bytes
    std::map<std::string, std::string> metadata;  ///< "__metadata__", empty if there is none
    std::uint64_t data_start = 0;                 ///< offset of the first tensor byte in the file
};

/// Checks a whole safetensors file held in memory and returns its header. Refused are: a length
/// that does not fit the file or passes MAX_SAFETENSORS_HEADER; JSON that is malformed, no object,
/// nested deeper than the format, not UTF-8, or has a key twice; unknown dtypes; shapes that are
/// negative, fractional, or overflow; offsets that are reversed, overlap, leave holes, pass the end
/// of the file or leave bytes after the last tensor; byte counts that differ from shape × dtype.
/// @param file   all bytes of the file; only the header's are read
/// @param source what to call the file in messages
/// @throws std::runtime_error naming source, tensor and numbers
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& source);

/// A safetensors file, open for reading.
class SafetensorsFile {
  public:
    /// Opens and checks `path`. @throws std::runtime_error as MappedFile and
    /// parse_safetensors_header
    explicit SafetensorsFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return path_; }
    const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
    const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

    /// Whether there is a tensor of that name.
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// The tensor of that name; null if there is none.
    const StoredTensor* find(std::string_view name) const;
    /// The tensor of that name. @throws std::runtime_error naming file and key if there is none
    const StoredTensor& tensor(std::string_view name) const;

    /// Checks that the tensor exists, has this shape and can be read as fp32.
    /// @throws std::runtime_error naming file, key and both shapes
    const StoredTensor& expect(std::string_view name, std::span<const std::int64_t> shape) const;

    /// All elements, in row-major order, F32 as stored, F16 and BF16 widened (exact).
    /// @throws std::runtime_error naming file and key if there is no such tensor or its dtype is
    ///         another one
    std::vector<float> read_f32(std::string_view name) const;

    /// As read_f32(name), after expect(name, shape).
    std::vector<float> read_f32(std::string_view name, std::span<const std::int64_t> shape) const;

    /// As read_f32(name), into memory of the caller's, whose size must be the number of elements.
    void read_f32(std::string_view name, std::span<float> out) const;

  private:
    std::filesystem::path path_;
    MappedFile file_;
    SafetensorsHeader header_;
    /// name -> index into header_.tensors; the views point into the names there.
    std::map<std::string_view, std::size_t> index_;
};

}  // namespace fa
