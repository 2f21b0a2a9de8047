"""Benchmarks: medians of several interleaved runs, other engines in the same run.

    make bench                       every area
    make bench BENCH="parquet -n 5"  one area, five rounds
    make bench BENCH="--list"        what there is

Each measurement is one process of its own, so that nothing one engine keeps in
memory or in its thread pools counts for another. A process first imports,
opens and warms up what is not measured, resets the kernel's high-water mark of
its resident memory, and then does the job once. Reported are CPU seconds (user
and system, the stable figure), wall seconds, peak resident memory over idle,
and the time to the first batch where there is one.
"""
