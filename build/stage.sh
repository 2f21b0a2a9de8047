#!/usr/bin/env bash
# Runs one stage of a longer run within a time budget and says how long it took:
#   build/stage.sh NAME SECONDS COMMAND [ARGUMENT ...]
set -u
name=$1 budget=$2
shift 2
printf '\n=== %s (at most %s s)\n' "$name" "$budget"
start=$(date +%s)
timeout --signal=TERM --kill-after=10 "$budget" "$@"
code=$?
took=$(($(date +%s) - start))
if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
	printf '=== %s: stopped after its budget of %s s\n' "$name" "$budget"
elif [ "$code" -ne 0 ]; then
	printf '=== %s: failed after %s s\n' "$name" "$took"
else
	printf '=== %s: ok in %s s\n' "$name" "$took"
fi
exit "$code"
