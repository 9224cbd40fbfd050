"""Judges what attn-opt writes by ONNX Runtime, OpenVINO and ONNX's reference evaluator: what ran before runs, with the same
numbers, and the models keep the types and shapes that they had.

usage: run.py ATTN_OPT SOURCE_FOLDER [--models FOLDER] [--only NAME ...] [--targets TARGET,...] [--jobs N] [--infinities]
"""

import argparse
import collections
import concurrent.futures
import functools
import pathlib
import sys
import time

import departures
import judge
import models
import runtimes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attn_opt", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--models", type=pathlib.Path, help="judge the models of this folder instead of those in SOURCE_FOLDER")
    parser.add_argument("--only", nargs="+", default=[], help="models of these names")
    parser.add_argument("--targets", help="for these targets alone")
    source.add_argument("--infinities", action="store_true", help="judge what --strict makes of the regression cases, by infinities")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def chosen_models(options):
    every = models.strict_cases if options.infinities else models.bundled
    chosen = models.models_in(options.models.resolve()) if options.models else every(options.source.resolve())
    if options.only:
        chosen = [one for one in chosen if one.name in options.only]
    if options.targets:
        wanted = options.targets.split(",")
        for one in chosen:
            one.targets = tuple(target for target in one.targets if target in wanted)
    return [one for one in chosen if one.targets]


def timed(one, attn_opt):
    begin = time.monotonic()
    try:
        return one, judge.judge(one, attn_opt), time.monotonic() - begin
    except Exception as error:  # which model it was is all that helps
        raise RuntimeError(f"{one.name}: {error!r}") from error


def main():
    options = arguments()
    chosen = chosen_models(options)
    is_whole = not (options.models or options.only or options.targets)
    table = departures.Table(departures.OF_INFINITIES if options.infinities else departures.DEPARTURES)
    changed, judged, slowest, failed = 0, collections.Counter(), [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for one, verdict, seconds in pool.map(functools.partial(timed, attn_opt=options.attn_opt.resolve()), chosen):
            changed += verdict.is_changed
            judged.update(verdict.judged)
            slowest = sorted([*slowest, (seconds, one.name)])[-5:]
            is_missing = verdict.runs_nowhere and not options.infinities
            nowhere = [judge.Finding(one.name, one.targets[0], "any", "runs nowhere: " + verdict.runs_nowhere)]
            for finding in [*verdict.findings, *(nowhere if is_missing else [])]:
                if not table.explains(finding):
                    failed.append(finding)
                    print("FAIL", finding, flush=True)
    print(f"{len(chosen)} models, {changed} changed; run after rewriting:", dict(judged), runtimes.VERSIONS)
    print("slowest:", ", ".join(f"{name} {seconds:.1f} s" for seconds, name in reversed(slowest)))
    unused = table.unused() if is_whole else []
    for departure in unused:
        print("FAIL a departure that nothing needs any more:", departure)
    return 1 if failed or unused or not changed else 0


if __name__ == "__main__":
    sys.exit(main())
