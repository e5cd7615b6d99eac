"""Tests of scripts/gpu_counters.py with a stand-in for ncu, which writes what the real one writes."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "gpu_counters.py"

NCU = """#!{python}
import json, sys
value = lambda flag: sys.argv[sys.argv.index(flag) + 1]
metrics = value("--metrics").split(",")
kernels = [("tiled", 8, 16), ("register_tiled", 4, 8)]  # blocks of the small problem and of the large
program = {{"context": {{"gpu": "a GPU", "program": "ch04_cuda_tiled"}},
           "launch": [{{"kernel": k, "blocks": large}} for k, _, large in kernels],
           "predicted": [{{"kernel": k, "memory_ms": 1, "products_ms": 2, "shared_ms": 3, "exponentials_ms": 4}}
                         for k, *_ in kernels],
           "traffic": [{{"kernel": k, "read_bytes": 1000, "written_bytes": 1000}} for k, *_ in kernels],
           "bank_conflicts": [{{"kernel": k, "padded": padded, "instructions": 1000 if padded else 1,
                               "wavefronts": 1000 if padded else 1}}
                              for k, *_ in kernels for padded in (False, True)]}}
json.dump(program, open(value("--json"), "w"))
names = ["ID", "Kernel Name", "Grid Size"] + [m for m in metrics if m != {missing!r}]
rows = [names, [""] * len(names)]
for kernel, small, large in kernels:
    for blocks in (3, small, large):
        rows.append([str(len(rows)), f"{{kernel}}_attention", f"({{blocks}}, 1, 1)"]
                    + [{values!r}.get(m, "{{:,}}".format(1000 if blocks != 3 else 7)) for m in names[3:]])
with open(value("--log-file"), "w") as log:
    log.write("==PROF== Connected to process\\n")
    for row in rows:
        log.write(",".join('"' + cell + '"' for cell in row) + "\\n")
"""


class GpuCounters(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def run_with(self, missing="", **values):
        ncu = self.path / "ncu"
        ncu.write_text(NCU.format(python=sys.executable, missing=missing, values=values), encoding="utf-8")
        ncu.chmod(0o755)
        return self.run_script("--ncu", str(ncu), "--json", str(self.path / "out.json"))

    def run_script(self, *flags, **environment):
        return subprocess.run([sys.executable, "-B", str(SCRIPT), *flags], capture_output=True, text=True,
                              env=os.environ | environment)

    def test_agreement(self):
        run = self.run_with()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        document = json.loads((self.path / "out.json").read_text(encoding="utf-8"))
        self.assertEqual(document["context"], {"gpu": "a GPU", "program": "scripts/gpu_counters.py"})
        self.assertEqual(len(document["rows"]), 8)
        self.assertEqual(document["rows"][0],
                         {"kernel": "tiled", "what": "bytes read", "executor": 1000, "hardware": 1000})
        self.assertTrue(all(check["pass"] for check in document["checks"]))
        # Predicted 3 ms in a launch of 1000 ns, and a counter that says 1000 %.
        shared = next(row for row in document["units"] if row["unit"] == "shared memory")
        self.assertEqual(list(shared.values()), ["tiled", "shared memory", 300000.0, 1000.0])

    def test_disagreement(self):
        run = self.run_with(**{"smsp__sass_data_bytes_mem_global_op_ld.sum": "1,001"})
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout.count("FAIL"), 2)  # of both kernels

    def test_a_metric_that_is_not_there(self):
        run = self.run_with(missing="smsp__sass_inst_executed_op_shared.sum")
        self.assertEqual(run.returncode, 1)
        self.assertIn("ncu has no number for smsp__sass_inst_executed_op_shared.sum", run.stderr)

    def test_without_ncu(self):
        run = self.run_script(PATH="/nowhere") if not pathlib.Path("/usr/local/cuda/bin/ncu").exists() else None
        if run:
            self.assertEqual(run.returncode, 77)
            self.assertIn("skipped: no ncu", run.stderr)

    def test_a_program_that_does_not_run(self):
        run = self.run_script("--ncu", "/bin/false")
        self.assertEqual(run.returncode, 1)
        self.assertIn("exit status 1", run.stderr)


if __name__ == "__main__":
    unittest.main()
