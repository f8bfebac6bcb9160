#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test-threads with the engine compiled for ThreadSanitizer, so that it runs
# like that in every build and not only in one made with --enable-tsan.
set -e -o pipefail
if [ -z "${COWSHED_BUILDDIR:-}" ]; then
  echo "run tests through ./run of the built tree" >&2
  exit 99
fi
# What ./run sets is for a build that is itself instrumented.
unset LD_PRELOAD LD_LIBRARY_PATH
src=$COWSHED_SRCDIR
out=$COWSHED_BUILDDIR/tests/unit/tsan
mkdir -p "$out"
echo 'int main (void) { return 0; }' >"$out/try.c"
gcc -fsanitize=thread "$out/try.c" -o "$out/try" 2>"$out/err" || {
  echo "SKIP: gcc cannot link with ThreadSanitizer: $(tail -n 1 "$out/err")"
  exit 77
}
{
  # One goal, so that make compiles in parallel and only what has changed.
  printf 'all: %s/test-threads\n' "$out"
  objects=()
  for c in "$src"/common/*.c "$src"/engine/*.c "$src"/engine/local/*.c \
           "$src"/tests/unit/test-threads.c; do
    o=${c#"$src/"}
    o=$out/${o//\//-}.o
    objects+=("$o")
    printf '%s: %s\n\t$(compile) -MMD -c -o $@ $<\n-include %s\n' \
      "$o" "$c" "${o%.o}.d"
  done
  printf '%s/test-threads: %s\n\t$(compile) -o $@ $^ %s\n' "$out" \
    "${objects[*]}" "$(pkg-config --libs sqlite3 libxxhash)"
} >"$out/Makefile"
# An outer make's jobs are no business of this one.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -j "$(nproc)" -f "$out/Makefile" \
  compile="gcc -std=gnu11 -g -O1 -pthread -fsanitize=thread -I$COWSHED_BUILDDIR -I$src \
-I$src/common -I$src/engine -I$src/engine/local $(pkg-config --cflags sqlite3 libxxhash)"
export TSAN_OPTIONS="halt_on_error=1:suppressions=$src/tests/tsan.supp"
exec "$out/test-threads"
