#!/bin/bash
# All models below MODELS to OUT, a job a model, on this machine or on those of a login file:
#   examples/fleet/parallel.sh MODELS OUT [options of GNU parallel, as --sshloginfile machines.txt --workdir "$PWD"]
# MODELS and OUT lie on a file system that all machines share. Its status is that of the worst model.
set -u
models=$1 out=$2
shift 2
find "$models" -name '*.onnx' -print0 | sort -z |
  parallel --null --jobs "${JOBS:-100%}" --joblog "${LOG:-parallel.log}" "$@" \
    attn-opt batch {} --root "$models" -o "$out" --jobs 1 --timeout "${TIMEOUT:-3600}" --quiet
attn-opt batch "$models" --root "$models" -o "$out" --timeout "${TIMEOUT:-3600}" --report "${SUMMARY:-summary.json}"
