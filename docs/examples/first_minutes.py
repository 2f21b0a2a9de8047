"""A first look at a table full of deletes: python first_minutes.py METADATA_LOCATION"""

import sys

from pyiceberg.table import StaticTable

import icebergexec

location = sys.argv[1]
table = StaticTable.from_metadata(location)

# pyiceberg's own methods, now in the engine. Nothing below holds more than this in the engine.
icebergexec.enable(memory_limit="128MiB")
scan = table.scan("id > 5", selected_fields=("id", "name"))
print(icebergexec.explain(scan))
print("rows:", scan.count())
for batch in scan.to_arrow_batch_reader():
    print("a batch of", batch.num_rows)

# The same without pyiceberg's scan: Iceberg's own rules for null and NaN, any consumer of Arrow streams.
with icebergexec.scan(location, "id > 5", ("id", "name"), limit=3) as stream:
    print(stream.to_pyarrow().read_all().to_pylist())

# Pieces of work for other processes; each can be pickled.
plan = icebergexec.plan(table)
print(len(plan), "data files in", len(plan.splits(2)), "pieces")
print("rows by pieces:", sum(b.num_rows for piece in plan.splits(2) for b in icebergexec.execute(piece)))

# What went on.
print("peak memory within the limit:", icebergexec.engine().stats()["memory_peak"] <= 128 << 20)
icebergexec.disable()
