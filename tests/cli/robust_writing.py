"""An output is the old file or the new one, whole: whatever happens while it is written.

robust_writing.py ATTN_OPT MODEL [--megabytes N] [--kills N]: MODEL, in which something is fused, is made N MB larger by a
tensor. kill -9 at random moments, a full disk, a folder that cannot be written, two runs on one output.
"""
import argparse
import glob
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

OLD = b"what was there before"
OUTPUT_STATUS = 5


def varint(number):
    text = bytearray()
    while number > 0x7F:
        text.append(number & 0x7F | 0x80)
        number >>= 7
    text.append(number)
    return bytes(text)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def with_tensor(model, size, fill):
    """MODEL, a serialized ModelProto, with an initializer of SIZE bytes: two messages in a row are merged."""
    tensor = varint(1 << 3) + varint(size) + varint(2 << 3) + varint(2)  # dims, data_type UINT8
    tensor += field(8, b"robust_writing_%d" % fill) + field(9, bytes([fill]) * size)
    return model + field(7, field(5, tensor))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if sys.version_info >= (3, 11) else hashlib.sha256(file.read()).hexdigest()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def has_nameless_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        return False
    return True


class Test:
    def __init__(self, given, folder):
        self.tool, self.kills, self.folder = given.attn_opt, given.kills, folder
        self.has_nameless_files = has_nameless_files(folder)
        with open(given.model, "rb") as file:
            model = file.read()
        self.inputs = [self.path(f"in{i}.onnx") for i in range(2)]
        for i, path in enumerate(self.inputs):
            write(path, with_tensor(model, given.megabytes << 20, i + 1))
        self.results = []
        start = time.monotonic()
        for i, path in enumerate(self.inputs):
            reference = self.path(f"reference{i}.onnx")
            self.check(self.run(path, reference).returncode == 0, "a plain run fails")
            self.check(os.path.getsize(reference) >= given.megabytes << 20, "the output lost its tensor")
            self.results.append(digest(reference))
            self.check(self.results[i] != digest(path), "nothing is fused in MODEL")
            os.remove(reference)
        self.seconds = (time.monotonic() - start) / 2

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def check(holds, what):
        if not holds:
            sys.exit(f"robust_writing: {what}")

    def start(self, model, output, *words, **how):
        return subprocess.Popen([self.tool, model, "-o", output, "-q", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def run(self, model, output, *words, **how):
        process = self.start(model, output, *words, **how)
        _, error = process.communicate()
        process.error = error.decode()
        return process

    def leftovers(self):
        return [name for name in os.listdir(self.folder) if name.startswith(".attn-opt-")]

    def test_kills(self, words, fresh):
        """FRESH: there is no output before. Returns how many kills came before the end, how many left a whole temporary."""
        output, before, litter = self.path("killed.onnx"), 0, 0
        for i in range(self.kills):
            for name in glob.glob(self.path("killed*")):
                os.remove(name)
            if not fresh:
                write(output, OLD)
            process = self.start(self.inputs[0], output, *words)
            time.sleep(random.uniform(0, 1.1 * self.seconds))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            before += process.returncode != 0
            if not fresh or os.path.exists(output):
                with open(output, "rb") as file:
                    is_old = not fresh and file.read(len(OLD) + 1) == OLD
                self.check(is_old or self.is_new(output, words), f"kill {i}: the output is neither the old file nor the new one")
            for name in self.leftovers():
                litter += 1
                os.remove(self.path(name))
        return before, litter

    def is_new(self, output, words):
        if not words:
            return digest(output) == self.results[0]
        return subprocess.run([self.tool, output, "-q"], stdout=subprocess.DEVNULL, check=False).returncode == 0

    def expect_refusal(self, process, output, what):
        self.check(process.returncode == OUTPUT_STATUS, f"{what}: status {process.returncode}, {process.error}")
        self.check(process.error.count("\n") == 1, f"{what}: {process.error!r} is not one line")
        with open(output, "rb") as file:
            self.check(file.read() == OLD, f"{what}: the old file is gone")
        self.check(not self.leftovers(), f"{what}: {self.leftovers()} is left")

    def test_full_disk(self):
        output = self.path("full.onnx")

        def half():
            size = os.path.getsize(self.inputs[0]) // 2
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        for words in ((), ("--external-data", "external")):
            write(output, OLD)
            self.expect_refusal(self.run(self.inputs[0], output, *words, preexec_fn=half), output, "a full disk")
        self.check(self.run(self.inputs[0], "/dev/full").returncode == OUTPUT_STATUS, "/dev/full is taken")

    def test_full_file_system(self):
        """In a file system of its own, where the machine lets us have one."""
        script = ('mount -t tmpfs -o size=4m tmpfs "$1" && printf "%s" "$4" > "$1/out.onnx" || exit 77; '
                  '"$2" "$3" -o "$1/out.onnx" -q; status=$?; [ "$(cat "$1/out.onnx")" = "$4" ] && [ "$(ls -A "$1")" = out.onnx ] || exit 78; exit $status')
        place = self.path("mounted")
        os.mkdir(place)
        if not shutil.which("unshare"):
            return "not tried"
        words = ["unshare", "-rm", "sh", "-c", script, "sh", place, os.path.abspath(self.tool), self.inputs[0], OLD.decode()]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode in (1, 77):
            return "not possible here"
        self.check(done.returncode == OUTPUT_STATUS, f"a full file system: {done.returncode}, {done.stderr.decode()}")
        return "ok"

    def test_read_only_folder(self):
        if os.geteuid() == 0:
            process = self.run(self.inputs[0], "/proc/out.onnx")
            self.check(process.returncode == OUTPUT_STATUS, f"a folder that takes no files: {process.returncode}")
            return
        folder = self.path("closed")
        os.mkdir(folder)
        output = os.path.join(folder, "out.onnx")
        write(output, OLD)
        os.chmod(folder, 0o555)
        try:
            self.expect_refusal(self.run(self.inputs[0], output), output, "a read-only folder")
        finally:
            os.chmod(folder, 0o755)

    def test_two_runs(self):
        output = self.path("both.onnx")
        for words in ((), ("--external-data", "external")):
            for _ in range(3):
                processes = [self.start(path, output, *words) for path in self.inputs]
                for process in processes:
                    process.communicate()
                    self.check(process.returncode == 0, f"two runs on one output: status {process.returncode}")
                whole = digest(output) in self.results if not words else self.is_new(output, words)
                self.check(whole, "two runs on one output: it is of neither")
                self.check(not self.leftovers(), "two runs on one output leave a temporary file")
                for name in glob.glob(self.path("both*")):
                    os.remove(name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attn_opt")
    parser.add_argument("model")
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--folder")
    given = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        test = Test(given, folder)
        for words in ((), ("--external-data", "external")):
            for fresh in (False, True):
                before, litter = test.test_kills(words, fresh)
                test.check(not (fresh and litter and test.has_nameless_files), "a kill leaves a temporary of a new file")
                print(f"{given.kills} kills, {before} before the end, {litter} whole temporaries, {' '.join(words) or 'one file'}")
        test.test_full_disk()
        print("a full file system of its own:", test.test_full_file_system())
        test.test_read_only_folder()
        test.test_two_runs()


main()
