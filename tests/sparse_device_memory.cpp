#include "tests/sparse_device_memory.h"

#include <fmt/format.h>

#include <stdexcept>

#include "common/cuda/check.h"

namespace fa::suite {
namespace {

/// A function of the driver, found through the runtime: nothing has to link libcuda, which a
/// machine without a GPU does not have.
template <class Function>
Function driver_function(const char* name) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr unsigned VERSION = 10020;  // of CUDA, when these functions came
    FA_CUDA_CHECK(
        cudaGetDriverEntryPointByVersion(name, &address, VERSION, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || address == nullptr)
        throw std::runtime_error(fmt::format("the driver has no {}", name));
    return reinterpret_cast<Function>(address);
}

void check(CUresult code, const char* call) {
    if (code != CUDA_SUCCESS)
        throw std::runtime_error(fmt::format("{}: error {} of the driver", call, int{code}));
}

#define FA_DRIVER(function, ...) \
    check(driver_function<decltype(&::function)>(#function)(__VA_ARGS__), #function)

}  // namespace

SparseDeviceMemory::SparseDeviceMemory(std::size_t bytes) {
    int device = 0;
    FA_CUDA_CHECK(cudaGetDevice(&device));
    FA_CUDA_CHECK(cudaFree(nullptr));  // makes the context
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    FA_DRIVER(cuMemGetAllocationGranularity, &page_, &properties_,
              CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    size_ = (bytes + page_ - 1) / page_ * page_;
    FA_DRIVER(cuMemAddressReserve, &start_, size_, 0, 0, 0);
}

SparseDeviceMemory::~SparseDeviceMemory() {
    try {
        for (const auto& [number, handle] : pages_) {
            FA_DRIVER(cuMemUnmap, start_ + number * page_, page_);
            FA_DRIVER(cuMemRelease, handle);
        }
        FA_DRIVER(cuMemAddressFree, start_, size_);
    } catch (const std::exception& error) {
        fmt::print(stderr, "while sparse device memory was freed: {}\n", error.what());
    }
}

void SparseDeviceMemory::back(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    for (std::size_t page = offset / page_; page <= (offset + bytes - 1) / page_; ++page) {
        if (pages_.contains(page)) continue;
        CUmemGenericAllocationHandle handle{};
        FA_DRIVER(cuMemCreate, &handle, page_, &properties_, 0);
        FA_DRIVER(cuMemMap, start_ + page * page_, page_, 0, handle, 0);
        pages_.emplace(page, handle);
        const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        FA_DRIVER(cuMemSetAccess, start_ + page * page_, page_, &access, 1);
    }
}

}  // namespace fa::suite
