#!/usr/bin/env bash
# Makes or refreshes the project's private Python environment in .venv from
# build/requirements.txt. Does nothing when it is up to date.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
stamp=.venv/requirements.stamp
want=$(cat build/requirements.txt; "$python" --version 2>&1)
if [ -f "$stamp" ] && [ "$want" = "$(cat "$stamp")" ]; then
	exit 0
fi
rm -rf .venv
echo "Making the Python environment in .venv (a minute or two) ..."
"$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r build/requirements.txt
printf '%s' "$want" >"$stamp"
