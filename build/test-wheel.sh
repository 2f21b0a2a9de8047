#!/usr/bin/env bash
# Installs a wheel in a clean environment and tries it: build/test-wheel.sh WHEEL
set -eu
cd "$(dirname "$0")/.."
wheel=$1
case $(basename "$wheel") in
icebergexec-*-py3-none-manylinux_*.whl) ;;
*) echo "$wheel: the tag is not py3-none-manylinux_*" >&2; exit 1 ;;
esac
clean=$(mktemp -d)
trap 'rm -rf "$clean"' EXIT
"${PYTHON:-python3}" -m venv "$clean/venv"
"$clean/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
tar -xzf tests/tables/fixtures.tar.gz -C "$clean" iceberg-fixtures/dv_and_eq
unset ICEBERGEXEC_LIBRARY PYTHONPATH
cd "$clean"
run() { "$clean/venv/bin/python" "$@"; }
# Without any other package: equality deletes and deletion vectors, through the C data interface and the command.
run - "$clean" <<'PROGRAM'
import sys
import icebergexec
folder = sys.argv[1] + "/iceberg-fixtures"
stream = icebergexec.scan(
    "/tmp/iceberg-fixtures/dv_and_eq/metadata/v5.metadata.json", path_prefixes={"/tmp/iceberg-fixtures": folder}
)
rows = sum(batch.num_rows for batch in stream)
assert rows == 33, rows
print(f"icebergexec {icebergexec.__version__}: {rows} of 33 rows in a clean environment")
PROGRAM
run -m icebergexec doctor
# With pyiceberg: its own methods.
run -m pip install --quiet --disable-pip-version-check 'pyiceberg[pyarrow]==0.12.0'
run - "$clean" <<'PROGRAM'
import sys
import icebergexec
from pyiceberg.table import StaticTable
folder = sys.argv[1] + "/iceberg-fixtures"
table = StaticTable.from_metadata(folder + "/dv_and_eq/metadata/v5.metadata.json")
with icebergexec.enabled(path_prefixes={"/tmp/iceberg-fixtures": folder}):
    rows = table.scan().to_arrow().num_rows
assert rows == 33, rows
print(f"with pyiceberg: {rows} of 33 rows through table.scan().to_arrow()")
PROGRAM
