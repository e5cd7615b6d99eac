"""The mean power of a GPU by NVML's energy counter, as common/cuda/power.h measures it."""
import ctypes
import threading
import time

EVERY = 0.002  # seconds between two looks at the counter
LONGEST_STEP = 1.0  # seconds; a counter that moves less often stands still


class EnergyCounter:
    """Joules that a GPU has used since its driver was loaded, memory included. `joules()` is None where that
    cannot be known: no library, no such GPU, no such counter."""

    def __init__(self, pci_bus_id, library="libnvidia-ml.so.1"):
        self._nvml, self._device = None, ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL(library)
            if (nvml.nvmlInit_v2() == 0 and
                    nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.encode(), ctypes.byref(self._device)) == 0):
                self._read = nvml.nvmlDeviceGetTotalEnergyConsumption
                self._nvml = nvml
        except (OSError, AttributeError):
            pass

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        if self._nvml is None or self._read(self._device, ctypes.byref(millijoules)) != 0:
            return None
        return 1e-3 * millijoules.value


def mean_power(counter, work, seconds):
    """Watts while `work` is repeated, from one step of the counter to another at least `seconds` later. None if that
    cannot be known; `work` may not have been called then."""
    start = counter.joules()
    if start is None or seconds <= 0:
        return None
    over, found = threading.Event(), []

    def sample():
        begin, last, first = time.perf_counter(), start, None
        while not over.is_set() and time.perf_counter() - begin < seconds + 2 * LONGEST_STEP:
            time.sleep(EVERY)
            joules = counter.joules()
            now = time.perf_counter()
            if joules is None:
                break
            if joules == last:
                continue
            last = joules
            if first is None:
                first = (now, joules)
            elif now - first[0] >= seconds:
                found.append((joules - first[1]) / (now - first[0]))
                break
        over.set()

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        while not over.is_set():
            work()
    finally:
        over.set()
        thread.join()
    return found[0] if found else None
