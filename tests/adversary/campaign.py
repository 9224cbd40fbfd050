"""Draws models that vary in structure, and judges what attn-opt makes of each by ONNX Runtime and OpenVINO.

    python tests/adversary/campaign.py --bin build/attn-opt --count 10000 [--seed 0] [--keep FOLDER] [--no-openvino]

Model SEED is always the same one: --seed N --count 1 shows a finding again. Status 1 if there is any finding.
"""
import argparse
import collections
import json
import pathlib
import re
import sys
import tempfile
import time

import numpy as np

from feeds import draw_feeds
from isolated import judged
from judge import Judge
from models import draw_model
from runtimes import program


def signature(finding):
    """What findings of one cause have in common, as a first guess."""
    return finding.kind + " " + re.sub(r"[\d.e+-]+|'[^']*'|\w+_\d+", "#", finding.text)[:90]


def keep(folder, drawn, finding):
    """The model and its feeds in a folder of their own, to be looked at."""
    place = pathlib.Path(folder) / str(drawn.seed)
    place.mkdir(parents=True, exist_ok=True)
    (place / "model.onnx").write_bytes(drawn.model.SerializeToString())
    (place / "truth.onnx").write_bytes(drawn.truth.SerializeToString())
    with open(place / "finding.txt", "a", encoding="utf-8") as text:
        text.write(finding.line() + "\n" + " ".join(drawn.graph.notes) + "\n")
    for position, feed in enumerate(draw_feeds(drawn)):
        np.savez(place / f"feed{position}.npz", **feed.arrays)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=program, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", help="a file of seeds, a line each, in the place of --seed and --count")
    parser.add_argument("--sizes-of-zero", action="store_true", help="judge empty batches, queries and keys too")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no model after that time")
    parser.add_argument("--keep", help="folder for models with findings")
    parser.add_argument("--no-openvino", action="store_true")
    parser.add_argument("--openvino-every", type=int, default=1, help="OpenVINO judges one model in N")
    return parser.parse_args()


def seeds_of(given):
    if not given.seeds:
        return range(given.seed, given.seed + given.count)
    lines = pathlib.Path(given.seeds).read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def main():
    given, begin = arguments(), time.monotonic()
    causes, done = collections.defaultdict(list), 0
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(given.bin, folder, not given.no_openvino)
        judge.skips_zero = not given.sizes_of_zero
        has_openvino = judge.use_openvino
        for seed in seeds_of(given):
            if time.monotonic() - begin > given.seconds:
                break
            drawn = draw_model(seed)
            judge.use_openvino = has_openvino and seed % given.openvino_every == 0
            for finding in judged(judge, drawn):
                causes[signature(finding)].append(finding)
                print(finding.line(), "|", *drawn.graph.notes, flush=True)
                if given.keep:
                    keep(given.keep, drawn, finding)
            for file in pathlib.Path(folder).glob(f"{seed}.*"):
                file.unlink()
            done += 1
    for cause, found in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):5} {cause} e.g. {found[0].seed}")
    print(json.dumps(dict(sorted(judge.counts.items()))))
    print(f"{done} models, {judge.counts.get('feeds', 0)} feeds, {sum(map(len, causes.values()))} findings, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if causes or not judge.counts.get("fused") else 0


if __name__ == "__main__":
    sys.exit(main())
