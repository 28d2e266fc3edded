#!/bin/sh
# Write the lock files anew from the *.in files (needs uv). Locks hold hashes and no addresses; torch and what only
# torch needs stay out of the training lock, since its CPU and GPU builds differ in hash: torch.txt has its version.
set -eu
cd "$(dirname "$0")"
compile() { uv pip compile -q --universal --python-version 3.11 --no-header --no-annotate --generate-hashes "$@"; }
compile build.in -o build.lock
compile core.in -o core.lock
compile dev.in -o dev.lock
no_torch=$(mktemp)
printf 'torch ; sys_platform == "never"\n' > "$no_torch"
compile train.in --override "$no_torch" -o train.lock \
  --no-emit-package torch --no-emit-package jinja2 --no-emit-package markupsafe --no-emit-package mpmath \
  --no-emit-package networkx --no-emit-package setuptools --no-emit-package sympy
rm -f "$no_torch"
compile ../trainer/requirements-gpu.in --no-deps -o gpu.lock
