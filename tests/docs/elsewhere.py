"""Commands of pages that tests/docs/run.py does not run itself: the test that does, or why none can."""

# What a placeholder stands for in the folder of a page.
PLACEHOLDERS = {
    "INPUT": "model.onnx", "MODEL": "model.onnx", "OUTPUT": "out.onnx", "A": "model.onnx", "B": "model.onnx", "MODELS": "models",
    "OUTDIR": "outputs", "bash|zsh|fish": "bash", "DIR": "matches", "PATH...": "cases", "NAME": "/model/encoder/layer.0/attention/self/Softmax",
    "BEFORE": "model.onnx", "AFTER": "model.onnx", "ID": "scores.operator", "COMMAND": "explain", "FILE": "written.onnxtxt", "MODEL.svg": "model.svg",
    "input.onnx": "model.onnx", "output.onnx": "out.onnx", "F.onnxtxt": "written.onnxtxt", "F.rule": "written.rule", "MISS": "scores.operator",
}

ALL = "scripts/test and .ci/clone run it"
SHELLS = "Terminal.CompletionsManualPageColourAndProgress runs each shell with it"
CTEST = "it runs tests that the whole run has too"
CASES = "the tests Cases.* run each of them"
LONG = "too long for a test; a shorter run of the same program is one"
MACHINE = "wants a machine that tests do not have; what it runs of attn-opt is run by Recipes.RunAsWritten"
RECIPES = "Recipes.RunAsWritten"
RUNTIMES = "Runtimes.RunWhatTheyRanWithTheSameNumbers runs the same script over all models"

ELSEWHERE = {
    "attn-opt test testdata/cases": CASES,
    "attn-opt test testdata/cases --report cases.xml": CASES,
    "./scripts/demo": ALL,
    "./scripts/test": ALL,
    "python bench/compare_tools.py --write docs/comparison.md": "Docs.ComparisonAgrees runs it for the tools that are quick",
    "cmake --build build --target attn-opt && build/attn-opt test testdata/cases/softmax_attention": CASES,
    "python -m attn_opt.effect MODEL": "Python.Package runs it in tests/python/test_effect.py",
    "pip install '.[onnx]'": "scripts/wheel installs the same package, and tries it with onnx",
    "pip install .": "scripts/wheel builds, installs and tries the same package",
    "pip install onnx onnxruntime openvino": "scripts/test installs them",
    "attn-opt completion bash > ~/.local/share/bash-completion/completions/attn-opt": SHELLS,
    'attn-opt completion zsh > "${fpath[1]}/_attn-opt"': SHELLS,
    "attn-opt completion fish > ~/.config/fish/completions/attn-opt.fish": SHELLS,
    "attn-opt man | man -l -": SHELLS,
    "ctest -V -R Metamorphic": CTEST,
    "ATTN_OPT_METAMORPHIC=SEED,COUNT build/metamorphic_tests": CTEST,
    "ctest -V -R NodeTests.All": CTEST,
    'ctest -R "SchemaBodies|AttentionSweep"': CTEST,
    "ctest --test-dir build -R Runtimes": CTEST,
    "ctest -V -R Mutants": CTEST,
    "ATTN_OPT_MUTATION_MODELS=FOLDER build/mutation_tests": CTEST,
    "cmake --install build --prefix PREFIX": "Package.ConsumerBuildsAgainstTheInstalledLibrary",
    "examples/fleet/parallel.sh models optimised": RECIPES,
    'examples/fleet/parallel.sh models optimised --sshloginfile machines.txt --workdir "$PWD"': MACHINE,
    "find models -name '*.onnx' | sort > models.txt": RECIPES,
    "part=$(sbatch --parsable examples/fleet/slurm.sbatch)": MACHINE,
    "sbatch --dependency=afterany:$part --wrap 'attn-opt batch @models.txt --root models -o optimised --report summary.json'": MACHINE,
    "kubectl apply -f examples/fleet/kubernetes.yaml": MACHINE,
    "python examples/fleet/ray_batch.py models -o optimised --address auto --memory 8GB --report summary.json": RECIPES,
    "attn-opt test cases --report cases.xml": RECIPES,
    "attn-opt batch models --baseline attn.json --report models.xml --report models.sarif --report models.json": RECIPES,
    "build/fuzz_optimize --mutations 100000 --seed 7 --crash crash.onnx testdata/cases testdata/fuzz/optimize": LONG,
    "python -m attn_opt.effect MODEL": "Python.Package (test_effect.py)",
    "bench/runtime_effect --write docs/benchmarks.md --repeats 5": LONG,
    "cmake --preset fuzz && cmake --build --preset fuzz": "wants Clang",
    "mkdir -p corpus && build/fuzz/fuzz_npz -max_total_time=1800 corpus testdata/runs testdata/trial testdata/fuzz/npz": LONG,
    "PYTHON tests/runtimes/run.py build/attn-opt . --models FOLDER": RUNTIMES,
    "PYTHON tests/runtimes/run.py build/attn-opt . --only softmax_attention/plain --targets ort": RUNTIMES,
    "PYTHON tests/runtimes/run.py build/attn-opt . --infinities": "Runtimes.StrictHoldsForInfinities",
    "python tests/adversary/campaign.py --bin build/attn-opt --count 1000 --keep findings": LONG,
    "python tests/adversary/campaign.py --bin build/attn-opt --seed 4711 --count 1": "Adversary.ModelsOfFixedSeeds",
    "python tests/adversary/operators.py --bin build/attn-opt --count 1000": LONG,
}
