#pragma once
/// @file
/// A whole file, mapped into memory for reading.

#include <cstddef>
#include <filesystem>
#include <span>

namespace fa {

/// Maps a regular file read-only; unmaps it at the end of its life. Pages come from the disk when
/// they are first read, so opening a large file costs nothing, and nothing is copied.
///
/// If another process shortens the file while it is mapped, reading the lost part ends this process
/// with SIGBUS; a model file must not be rewritten in place while it is in use.
class MappedFile {
  public:
    /// @throws std::runtime_error with the path and the system's reason if it cannot be opened or
    ///         is not a regular file (a directory, a pipe…)
    explicit MappedFile(const std::filesystem::path& path);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    /// The contents; empty for an empty file. Valid as long as this object is.
    std::span<const std::byte> bytes() const { return {data_, size_}; }

  private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace fa
