#!/bin/sh
# Builds the package of rsmpi with Open MPI, whatever MPI is the one by default.
# usage: rsmpi.sh PACKAGE TARGET-DIRECTORY
set -e
MPICC=mpicc.openmpi exec cargo build --quiet --release --locked --manifest-path "$1/Cargo.toml" --target-dir "$2"
