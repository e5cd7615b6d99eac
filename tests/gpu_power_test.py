#!/usr/bin/env python3
"""scripts/gpu_power.py with a stand-in for NVML (fake_nvml.cpp): a GPU that draws 250 W.

usage: gpu_power_test.py LIBRARY
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
sys.dont_write_bytecode = True
from gpu_power import EnergyCounter, mean_power  # noqa: E402

GPU = "0000:01:00.0"
LIBRARY = ""


class Power(unittest.TestCase):
    def tearDown(self):
        os.environ.pop("FAKE_NVML", None)

    def test_energy_over_time(self):
        calls = []
        power = mean_power(EnergyCounter(GPU, LIBRARY), lambda: calls.append(os.getpid()), 0.5)
        self.assertAlmostEqual(power, 250, delta=50)
        self.assertGreater(len(calls), 10)

    def test_unknown_is_no_error(self):
        def unknown(counter):
            self.assertIsNone(counter.joules())
            self.assertIsNone(mean_power(counter, self.fail, 0.1))
        unknown(EnergyCounter(GPU, "libno-such-library.so.1"))
        unknown(EnergyCounter(GPU, "libm.so.6"))
        unknown(EnergyCounter("0000:02:00.0", LIBRARY))
        for lacking in ["driver", "counter"]:
            os.environ["FAKE_NVML"] = lacking
            unknown(EnergyCounter(GPU, LIBRARY))
        self.assertIsNone(mean_power(EnergyCounter(GPU, LIBRARY), self.fail, 0))

    def test_a_counter_that_stands_still_and_work_that_fails_end(self):
        os.environ["FAKE_NVML"] = "steps"
        counter = EnergyCounter(GPU, LIBRARY)
        self.assertEqual(counter.joules(), 7.0)
        self.assertIsNone(mean_power(counter, lambda: None, 0.01))

        def broken():
            raise RuntimeError("broken")
        with self.assertRaisesRegex(RuntimeError, "broken"):
            mean_power(counter, broken, 60)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    unittest.main()
