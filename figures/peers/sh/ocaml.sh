#!/bin/sh
# Builds an OCaml program with Lwt. The compiler writes beside the source, so it gets a copy.
# usage: ocaml.sh SOURCE PROGRAM
set -e
mkdir -p "$2.objects"
cp "$1" "$2.objects/program.ml"
ocamlfind ocamlopt -thread -package lwt.unix -linkpkg -o "$2" "$2.objects/program.ml"
