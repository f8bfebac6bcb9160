#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every command and option that cowshed --help names, and every parameter of
# the plugin, is in its manual; the manuals are sound POD.
. "$COWSHED_SRCDIR/tests/functions.sh"
cmd_pod=$COWSHED_SRCDIR/tools/cowshed.pod
plugin_pod=$(ls "$COWSHED_SRCDIR"/plugins/cowshed/*.pod)
missing=0
for pod in "$cmd_pod" "$plugin_pod" "$COWSHED_SRCDIR"/docs/*.pod; do
  if command -v podchecker >/dev/null; then
    podchecker "$pod" >"$tmp/pod" 2>&1 || { cat "$tmp/pod"; missing=1; }
  fi
done
# An item or heading may carry arguments, and several names.
# No "| grep -q": it may end before the writer, which pipefail takes for a
# failure.
documented () { # POD WORD
  local headings
  headings=$(sed -e 's/[BIFCL]<<* *//g; s/ *>*>//g' "$1" |
    grep -E '^=(item|head[1-4]) ')
  grep -qE -- "(^|[ ,=|[])$2([][ ,=|]|\$)" <<<"$headings"
}
cowshed --help >"$tmp/help"
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' "$tmp/help")
[ "$(wc -w <<<"$commands")" -ge 18 ] || fail "few commands in --help: $commands"
for c in $commands; do
  documented "$cmd_pod" "$c" || { echo "no section on the command $c"; missing=1; }
  cowshed "$c" --help >"$tmp/help-$c" || fail "cowshed $c --help"
done
options=$(cat "$tmp"/help* | grep -oE '^ +(-[a-zA-Z], )?--[a-z][a-z-]*' |
  grep -oE -- '-(-[a-z][a-z-]*|[a-zA-Z])' | sort -u)
for o in $options; do
  grep -qE -- "(^|[^a-z-])$o([^a-z-]|\$)" <(sed 's/[BCFI]<//g' "$cmd_pod") ||
    { echo "the option $o is not documented"; missing=1; }
done
nbdkit --dump-plugin "$COWSHED_PLUGIN" >/dev/null || fail "--dump-plugin"
"$COWSHED_BUILDDIR/run" nbdkit cowshed --help >"$tmp/plugin-help"
params=$(grep -oE '^ *[a-z][a-z-]*=' "$tmp/plugin-help" | tr -d ' =' | sort -u)
[ "$(wc -w <<<"$params")" -ge 8 ] || fail "few parameters in the plugin's help: $params"
for p in $params pool control control-listen control-token-file default \
  offload detect-zeroes metadata-cache warn-at critical-at commit-interval; do
  grep -qE "^=item.*$p=" <(sed 's/[BCFI]<//g' "$plugin_pod") ||
    { echo "the parameter $p= is not documented"; missing=1; }
done
[ $missing = 0 ] || fail "something is not documented"
