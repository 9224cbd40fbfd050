"""Judges a model in a process of its own: runtimes crash too, on models that are valid and on inputs of size 0."""
import multiprocessing
import os
import pickle

from judge import Finding

CONTEXT = multiprocessing.get_context("fork")


class Stage:
    """Where a judgement stands, told to the process that waits for it."""

    def __init__(self, pipe):
        self.pipe = pipe

    def __call__(self, text):
        self.pipe.send(("stage", text))


def _child(judge, drawn, pipe):
    judge.counts, judge.stage = {}, Stage(pipe)
    pipe.send(("done", judge.judge(drawn), judge.counts))
    pipe.close()
    os._exit(0)  # no clean-up of what the parent shares


def judged(judge, drawn, seconds=300):
    """Findings of DRAWN. A crash of a runtime on the original judges nothing; on what was written it is a finding."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_child, args=(judge, drawn, sender))
    child.start()
    sender.close()
    stage, findings = "start", None
    try:
        while receiver.poll(seconds):
            message = receiver.recv()
            if message[0] == "stage":
                stage = message[1]
                continue
            findings = message[1]
            for what, number in message[2].items():
                judge.count(what, number)
            break
    except (EOFError, pickle.UnpicklingError):
        pass
    if findings is None and child.is_alive():
        child.kill()
    child.join()
    if findings is not None:
        return findings
    if not stage.startswith("after"):
        if not judge.skips_zero:
            judge.skips_zero = True
            try:
                return judged(judge, drawn, seconds)
            finally:
                judge.skips_zero = False
        judge.count("originals on which a runtime crashes")
        return []
    return [Finding(drawn.seed, f"crash {stage}", f"exit code {child.exitcode}")]
