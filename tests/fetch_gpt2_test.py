"""Tests of scripts/fetch_gpt2.sh against a hub on this machine.

Two servers play the parts of the real one. The hub knows the files: it answers for a small one after a
redirect to another address of its own, with git's SHA-1 as ETag, and sends those who ask for a large one to
the store, naming its SHA-256 in X-Linked-ETag. The store has the bytes: it answers requests for ranges,
refuses HEAD as stores with signed addresses do, and can be told to misbehave.
"""

import contextlib
import hashlib
import http.server
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "fetch_gpt2.sh"
MODEL = "/openai-community/gpt2/resolve/main/"
SHARD = (
    "/datasets/karpathy/fineweb-edu-100B-gpt2-token-shards/resolve/main/edu_fineweb_val_000000.bin"
)
TOKENS = 65537
NAMES = ["config.json", "vocab.json", "merges.txt", "model.safetensors", "val_tokens.bin"]


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, headers=(), body=b"", length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def do_HEAD(self):
        self.do_GET()


class HubHandler(Handler):
    def do_GET(self):
        hub = self.server.world
        hub.asked.append((self.command, self.path))
        if self.path in hub.status:
            return self.answer(hub.status[self.path])
        if self.path.startswith("/cache/"):
            data = hub.files[self.path.removeprefix("/cache")]
            etag = hub.etags.get(self.path.removeprefix("/cache"), git_sha1(data))
            return self.answer(200, [("ETag", f'"{etag}"')], data)
        if self.path not in hub.files:
            return self.answer(404)
        if self.path not in hub.large:
            return self.answer(307, [("Location", "/cache" + self.path)])
        data = hub.files[self.path]
        headers = [("Location", hub.store_url + self.path), ("X-Linked-Size", str(len(data)))]
        etag = hub.etags.get(self.path, hashlib.sha256(data).hexdigest())
        if etag is not None:
            headers += [("X-Linked-ETag", f'"{etag}"')]
        return self.answer(302, headers)


class StoreHandler(Handler):
    def do_GET(self):
        store = self.server.world
        wanted = self.headers.get("Range")
        store.ranges.append((self.path, wanted))
        if self.command == "HEAD":
            return self.answer(403)
        data = store.stored.get(self.path, store.files[self.path])
        first, last, status, headers = 0, len(data) - 1, 200, []
        if wanted and store.takes_ranges:
            begin, end = wanted.removeprefix("bytes=").split("-")
            first, last = int(begin), min(int(end or last), last)
            if first >= len(data):
                return self.answer(416)
            status, headers = 206, [("Content-Range", f"bytes {first}-{last}/{len(data)}")]
        body = data[first : last + 1]
        if store.cuts:  # send so many bytes, then lose the connection, or fall silent
            self.close_connection = True
            self.answer(status, headers, body[: store.cuts.pop(0)], len(body))
            if store.silent:
                self.wfile.flush()
                store.released.wait(60)
            return None
        return self.answer(status, headers, body)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that hangs up is what these tests are about."""


class World:
    """The hub, the store, and what they have."""

    def __init__(self):
        rng = random.Random(1)
        shard_tokens = [rng.randrange(50257) for _ in range(TOKENS + 1000)]
        self.shard = struct.pack("<256i", 20240520, 1, len(shard_tokens), *[0] * 253)
        self.shard += struct.pack(f"<{len(shard_tokens)}H", *shard_tokens)
        self.files = {
            MODEL + "config.json": b'{"n_layer": 12}\n',
            MODEL + "vocab.json": rng.randbytes(50_000),
            MODEL + "merges.txt": rng.randbytes(20_000),
            MODEL + "model.safetensors": rng.randbytes(1_000_003),
            SHARD: self.shard,
        }
        self.large = {MODEL + "model.safetensors", SHARD}
        self.etags = {}  # path -> what the hub says instead of the truth
        self.status = {}  # path -> the hub's answer, instead of the file
        self.stored = {}  # path -> what the store has instead of the file
        self.cuts = []  # for each transfer from the store, after how many bytes it breaks
        self.silent = False  # a transfer that breaks leaves the connection open
        self.released = threading.Event()
        self.takes_ranges = True
        self.asked = []
        self.ranges = []

    @contextlib.contextmanager
    def running(self):
        servers = []
        for handler in (HubHandler, StoreHandler):
            server = Server(("127.0.0.1", 0), handler)
            server.world = self
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            servers.append(server)
        self.url, self.store_url = (f"http://127.0.0.1:{s.server_address[1]}" for s in servers)
        try:
            yield self
        finally:
            self.released.set()
            for server in servers:
                server.shutdown()
                server.server_close()


class FetchTest(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.world = stack.enter_context(World().running())
        self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "gpt2"
        self.environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        self.environment["FA_RETRY_SECONDS"] = "0"

    def command(self):
        return [str(SCRIPT), "--hub", self.world.url, "--dir", str(self.directory)]

    def fetch(self, expect=0):
        done = subprocess.run(
            self.command(),
            env=self.environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def contents(self, name):
        return (self.directory / name).read_bytes()

    def parts(self):
        return sorted(p.name for p in self.directory.glob("*.part"))

    def bytes_in_parts(self):
        """How much of an unfinished file is here. A part may be renamed between two looks at it."""
        sizes = [0]
        for path in self.directory.glob("*.part"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return max(sizes)

    def ranges_of(self, name):
        return [r for path, r in self.world.ranges if path.endswith(name)]

    def check_complete(self):
        for name in NAMES[:-1]:
            self.assertEqual(self.contents(name), self.world.files[MODEL + name], name)
        tokens = self.contents("val_tokens.bin")
        self.assertEqual(len(tokens), 1024 + 2 * TOKENS)
        self.assertEqual(struct.unpack("<3i", tokens[:12]), (20240520, 1, TOKENS))
        self.assertEqual(tokens[12:], self.world.shard[12 : len(tokens)])
        self.assertEqual(self.parts(), [])
        sums = dict(line.split()[::-1] for line in self.contents("SHA256SUMS").decode().splitlines())
        self.assertEqual(sums, {n: hashlib.sha256(self.contents(n)).hexdigest() for n in NAMES})

    def check_refused(self, words, missing="model.safetensors"):
        message = self.fetch(expect=1).splitlines()[-1]
        self.assertTrue(message.startswith("fetch_gpt2.sh: "), message)
        self.assertIn(words, message)
        self.assertFalse((self.directory / missing).exists())
        self.assertFalse((self.directory / "SHA256SUMS").exists())

    def test_fetches_everything(self):
        said = self.fetch()
        self.check_complete()
        self.assertIn("model.safetensors: 1000003 bytes", said)
        # Of the shard only the head was asked for, and nothing was asked for twice.
        self.assertEqual(self.ranges_of("edu_fineweb_val_000000.bin"), ["bytes=0-132097"])
        self.assertEqual(len(self.ranges_of("model.safetensors")), 1)

    def test_a_second_run_needs_no_network(self):
        self.fetch()
        asked = len(self.world.asked)
        self.assertIn("as they were fetched", self.fetch())
        self.assertEqual(len(self.world.asked), asked)

    def test_damaged_files_are_fetched_again(self):
        self.fetch()
        for name in ("model.safetensors", "val_tokens.bin"):
            damaged = bytearray(self.contents(name))
            damaged[-1] ^= 1
            (self.directory / name).write_bytes(damaged)
        self.assertIn("model.safetensors: differs from the server's", self.fetch())
        self.check_complete()
        (self.directory / "merges.txt").unlink()
        self.fetch()
        self.check_complete()
        self.assertEqual(len(self.ranges_of("model.safetensors")), 2)

    def test_goes_on_after_lost_connections(self):
        self.world.cuts = [400_000, 0, 300_000]
        said = self.fetch()
        self.check_complete()
        self.assertEqual(
            self.ranges_of("model.safetensors"),
            [None, "bytes=400000-", "bytes=400000-", "bytes=700000-"],
        )
        self.assertIn("connection lost at byte 400000 of 1000003", said)

    def test_gives_up_in_the_end_and_keeps_what_came(self):
        self.world.cuts = [100_000] + [0] * 100
        self.check_refused("100000 of 1000003 bytes are here")
        self.assertEqual(len(self.parts()), 1)
        self.world.cuts = []
        self.assertIn("100000 of them are here", self.fetch())
        self.check_complete()

    def test_can_be_stopped_and_started_again(self):
        self.world.cuts, self.world.silent = [500_000], True
        process = subprocess.Popen(
            self.command(),
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(600):
            if self.bytes_in_parts() > 400_000:
                break
            time.sleep(0.1)
        another = self.fetch(expect=1)  # two at once would write the same file
        self.assertIn("another fetch_gpt2.sh is at work", another)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("run again to go on", said)
        self.assertFalse((self.directory / "model.safetensors").exists())
        self.world.released.set()
        (part,) = self.parts()
        came = (self.directory / part).stat().st_size  # curl may not have written its last block
        self.assertGreater(came, 400_000)
        self.fetch()
        self.check_complete()
        self.assertEqual(self.ranges_of("model.safetensors"), [None, f"bytes={came}-"])

    def test_starts_over_if_the_store_cannot_resume(self):
        self.world.takes_ranges = False
        self.world.cuts = [400_000]
        self.check_refused("could not fetch the first 132098 bytes", missing="val_tokens.bin")
        self.assertEqual(
            self.contents("model.safetensors"), self.world.files[MODEL + "model.safetensors"]
        )

    def test_a_store_without_ranges_does_not_send_the_whole_shard(self):
        self.world.takes_ranges = False
        self.world.files[SHARD] += bytes(50_000_000)
        self.check_refused("could not fetch the first 132098 bytes", missing="val_tokens.bin")
        self.assertFalse((self.directory / "val_tokens.bin.part").exists())

    def test_corrupted_bytes_are_refused(self):
        path = MODEL + "model.safetensors"
        corrupted = bytearray(self.world.files[path])
        corrupted[123_456] ^= 4
        self.world.stored[path] = bytes(corrupted)
        self.check_refused(
            f"checksum is {hashlib.sha256(corrupted).hexdigest()}, the server named "
            f"{hashlib.sha256(self.world.files[path]).hexdigest()}"
        )
        self.assertEqual(self.parts(), [])
        self.world.stored = {}
        self.fetch()
        self.check_complete()

    def test_a_store_with_too_few_or_too_many_bytes_is_refused(self):
        path = MODEL + "model.safetensors"
        self.world.stored[path] = self.world.files[path] + b"x"
        self.check_refused("1000004 bytes arrived, the server named 1000003")
        self.world.stored[path] = self.world.files[path][:-1]
        self.check_refused("1000002 of 1000003 bytes are here")

    def test_small_files_are_checked_too(self):
        self.world.etags[MODEL + "vocab.json"] = "0" * 40
        self.check_refused(
            f"vocab.json: checksum is {git_sha1(self.world.files[MODEL + 'vocab.json'])}, the server "
            f"named {'0' * 40}",
            missing="vocab.json",
        )

    def test_a_server_without_checksums_is_refused(self):
        self.world.etags[MODEL + "model.safetensors"] = None
        self.check_refused("names no size and checksum")
        self.world.etags[MODEL + "model.safetensors"] = git_sha1(b"")
        self.check_refused("names no SHA-256 of it (X-Linked-ETag)")
        self.world.etags[MODEL + "config.json"] = "latest"
        (self.directory / "config.json").unlink()
        self.check_refused("names no size and checksum", missing="config.json")

    def test_parts_of_another_version_are_not_resumed(self):
        path = MODEL + "model.safetensors"
        self.world.cuts = [400_000] + [0] * 100
        self.fetch(expect=1)
        self.world.cuts = []
        self.world.files[path] = random.Random(2).randbytes(900_001)
        self.fetch()
        self.check_complete()
        self.assertEqual(self.ranges_of("model.safetensors")[-1], None)

    def test_the_servers_refusals_are_passed_on(self):
        for status in (401, 404, 500, 503):
            self.world.status[MODEL + "config.json"] = status
            self.check_refused(f"config.json: the server answers {status}", missing="config.json")
        self.world.status = {SHARD: 404}
        self.check_refused("answers 404 to a request for a range", missing="val_tokens.bin")

    def test_redirects_in_a_circle_end(self):
        self.world.large.discard(MODEL + "config.json")
        self.world.files["/circle"] = b""
        path = MODEL + "config.json"
        original = HubHandler.do_GET

        def circle(handler):
            if handler.path == path:
                return handler.answer(307, [("Location", path)])
            return original(handler)

        HubHandler.do_GET = circle
        self.addCleanup(setattr, HubHandler, "do_GET", original)
        self.check_refused("from one address to the next", missing="config.json")

    def test_shards_of_another_kind_are_refused(self):
        for header, words in (
            ((20240801, 7, 70000), "magic and version are 20240801 and 7"),
            ((20240520, 1, 1000), "has 1000 tokens, fewer than 65537"),
        ):
            self.world.stored[SHARD] = struct.pack("<3i", *header) + self.world.shard[12:]
            self.check_refused(words, missing="val_tokens.bin")
        bad = bytearray(self.world.shard)
        struct.pack_into("<H", bad, 1024 + 2 * 65536, 50257)
        self.world.stored[SHARD] = bytes(bad)
        self.check_refused("has token 50257, the vocabulary ends at 50256", missing="val_tokens.bin")
        self.world.stored[SHARD] = self.world.shard[:2000]
        self.check_refused("2000 of 132098 bytes arrived", missing="val_tokens.bin")

    def test_no_server_is_one_clear_line(self):
        self.world.url = "http://127.0.0.1:9"  # the discard service: nobody listens
        self.check_refused("cannot ask for http://127.0.0.1:9", missing="config.json")

    def test_wrong_usage_and_help(self):
        for arguments in (["--hub"], ["--dir", ""], ["--hub", "ftp://x"], ["model"], ["--fast"]):
            done = subprocess.run(
                [str(SCRIPT), *arguments], capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = subprocess.run([str(SCRIPT), "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--hub URL", done.stdout)

    def test_a_missing_tool_is_named(self):
        tools = self.directory.parent / "bin"
        tools.mkdir()
        for tool in ("bash", "dirname", "env"):
            (tools / tool).symlink_to(subprocess.check_output(["which", tool], text=True).strip())
        self.environment["PATH"] = str(tools)
        self.assertIn("needs curl", self.fetch(expect=1))

    def test_a_directory_that_cannot_be_made_is_named(self):
        self.directory.write_bytes(b"")
        self.assertIn(f"cannot make the directory {self.directory}", self.fetch(expect=1))


if __name__ == "__main__":
    if not SCRIPT.is_file():
        sys.exit(f"there is no {SCRIPT}")
    if shutil.which("curl") is None:
        sys.exit("skipped: needs curl")
    unittest.main()
