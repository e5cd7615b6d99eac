"""Tests of scripts/count_instructions.py on disassemblies written by hand, and of what it says when there is
nothing to count with."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "count_instructions.py"
sys.path.insert(0, str(SCRIPT.parent))
import count_instructions as script  # noqa: E402

# ROWS = 1, KEYS = 1, CHANNELS = 1: 8 multiply-adds for S and 8 for O in a tile.
CONFIG = "INS0_19RegisterTiledConfigILi8ELi2ELi8ELi2ELi8ELb1EEENS_8BFloat16EEEvNS0_15KernelArgumentsIT0_EE"
EXP = f"_ZN2fa6on_gpu24register_tiled_attention{CONFIG}"
EXP2 = f"_ZN2fa6on_gpu14exp2_attention{CONFIG}"


def tile_loop(weight, mask=()):
    """A loop over tiles: two multiply-adds four times, the weight, four multiply-adds twice."""
    return ["tile:", "LDG.E R1, [R2]", "scores:", "LDS.128 R4, [R3]", "FFMA R1, R2, R3, R1", "FFMA R1, R2, R3, R1",
            "@!P0 BRA scores", *mask, *weight, "sum:", "LDS.128 R4, [R3]", *["FFMA R1, R2, R3, R1"] * 4,
            "@P1 BRA sum", "@!P0 BRA tile"]


WEIGHT = {EXP: ["FADD R1, R2, -R3", "FMUL R1, R1, 1.4427", "FSETP.GEU.AND P2, PT, |R1|, 126, PT",
                "@!P2 FMUL R1, R1, 0.5", "MUFU.EX2 R1, R1", "@!P2 FMUL R1, R1, R1", "STS [R3], R1"],
          EXP2: ["FFMA R1, R2, R3, -R4", "MUFU.EX2 R1, R1", "STS [R3], R1"]}


def kernel(name):
    masked = [line.replace("tile", "masked").replace("scores", "scores2").replace("sum", "sum2")
              for line in tile_loop(WEIGHT[name], ["ISETP.GE.AND P3, PT, R1, R2, PT", "FSEL R1, R1, -INF , P3"])]
    return ["S2R R1, SR_TID.X", *tile_loop(WEIGHT[name]), *masked, "MUFU.RCP R1, R2", "EXIT", "self:", "BRA self"]


def as_cuobjdump(names, architecture="sm_90a"):
    """Addresses instead of labels, encodings behind the instructions and on lines of their own."""
    lines = ["Fatbin elf code:", "================", f"code for {architecture}"]
    for name in names:
        addresses, at = {}, 0
        for line in kernel(name):
            if line.endswith(":"):
                addresses[line[:-1]] = at
            else:
                at += 16
        lines += [f"\t\tFunction : {name}", "\t.headerflags\t@\"EF_CUDA_SM90\""]
        at = 0
        for line in kernel(name):
            if line.endswith(":"):
                continue
            words = line.split()
            if words[-1] in addresses:
                words[-1] = f"0x{addresses[words[-1]]:x}"
            lines += [f"        /*{at:04x}*/        {' '.join(words)} ;      /* 0x0000000000007945 */",
                      "                                             /* 0x000fe20000000a00 */"]
            at += 16
    return "\n".join(lines)


def as_nvdisasm(names):
    lines = ["\t.target\tsm_90a"]
    for name in names:
        lines += [f".text.{name}:"]
        at = 0
        for line in kernel(name):
            if line.endswith(":"):
                lines.append(f".L_x_{line[:-1]}:")
            else:
                words = line.split()
                if "BRA" in words:
                    words[-1] = f"`(.L_x_{words[-1]})"
                lines.append(f"        /*{at:04x}*/        {' '.join(words)} ;")
                at += 16
    return "\n".join(lines)


class Counting(unittest.TestCase):
    def check(self, text):
        found = script.functions(text)
        self.assertEqual(set(found), {("sm_90a", EXP), ("sm_90a", EXP2)})
        exp = script.analyse(found["sm_90a", EXP], EXP)
        self.assertEqual(exp["softmax"], {"FADD": 1, "FMUL": 3, "FSETP": 1, "MUFU": 1, "STS": 1})
        self.assertEqual(exp["products"], {"FFMA": 16, "LDS": 6, "BRA": 6})  # four trips, two trips
        self.assertEqual(exp["loop"]["FFMA"], 16)
        self.assertEqual(exp["kernel"]["MUFU"], 3)
        self.assertEqual(exp["kernel"]["FSEL"], 1)
        exp2 = script.analyse(found["sm_90a", EXP2], EXP2)
        self.assertEqual(exp2["softmax"], {"FFMA": 1, "MUFU": 1, "STS": 1})
        self.assertEqual(exp2["loop"]["FFMA"], 17)
        rows = {row["instruction"]: row for row in script.rows_of({"exp": exp, "exp2": exp2})}
        self.assertEqual(rows["FMUL"]["difference"], -3)
        self.assertEqual(rows["all"]["softmax, exp"], 7)
        self.assertEqual(rows["others"]["products, exp"], 6)

    def test_cuobjdump(self):
        self.check(as_cuobjdump([EXP, EXP2]))

    def test_nvdisasm(self):
        self.check(as_nvdisasm([EXP, EXP2]))

    def test_kernels_are_chosen_by_head_dim_type_and_architecture(self):
        found = script.functions(as_cuobjdump([EXP, EXP2]) + "\n" + as_cuobjdump([EXP, EXP2], "sm_80"))
        arch, name, _ = script.choose(found, "exp2_attention", 8, "bf16", "")
        self.assertEqual((arch, name), ("sm_90a", EXP2))
        self.assertEqual(script.choose(found, "exp2_attention", 8, "bf16", "sm_80")[0], "sm_80")
        for head_dim, dtype, architecture in ((16, "bf16", ""), (8, "f16", ""), (8, "bf16", "sm_100")):
            with self.assertRaises(script.Skipped):
                script.choose(found, "exp2_attention", head_dim, dtype, architecture)

    def test_code_of_another_shape_is_refused(self):
        body = script.functions(as_cuobjdump([EXP]))["sm_90a", EXP]
        with self.assertRaises(script.Unexpected):  # no loop around the exponentials
            script.analyse([i for i in body if i.target is None], EXP)
        with self.assertRaises(script.Unexpected):  # nine multiply-adds a tile, two in the body
            script.analyse(body, EXP.replace("Li8ELi2ELi8E", "Li9ELi2ELi8E"))
        with self.assertRaises(script.Unexpected):
            script.analyse(body, "a name without sizes")


class Skipping(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True)

    def test_no_file(self):
        run = self.run_script("--tool", "/bin/true", "/no/such/file")
        self.assertEqual(run.returncode, script.SKIPPED)
        self.assertIn("skipped: no file /no/such/file", run.stderr)

    def test_no_gpu_code(self):
        with tempfile.NamedTemporaryFile() as empty:
            run = self.run_script("--tool", "/bin/true", empty.name)  # says nothing, as cuobjdump does
        self.assertEqual(run.returncode, script.SKIPPED)
        self.assertIn("holds no GPU code", run.stderr)

    def test_a_tool_that_fails(self):
        with tempfile.NamedTemporaryFile() as empty:
            run = self.run_script("--tool", "/bin/false", empty.name)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(len(run.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
