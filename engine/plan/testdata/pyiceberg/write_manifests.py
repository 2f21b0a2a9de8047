"""Writes the manifests and manifest lists beside this file with pyiceberg 0.12.

    python write_manifests.py

They are input for the tests that compare the decoder with iceberg-go's: one
entry per block, every partition type, with and without compression and metrics.
"""

import pathlib
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, VoidTransform, YearTransform
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

FOLDER = pathlib.Path(__file__).parent
IO = PyArrowFileIO()
TYPES = [
    (BooleanType(), True),
    (IntegerType(), 7),
    (LongType(), 1 << 40),
    (FloatType(), 1.5),
    (DoubleType(), -2.25),
    (DateType(), 19000),
    (TimeType(), 3_600_000_001),
    (TimestampType(), 1_700_000_000_000_001),
    (TimestamptzType(), 1_700_000_000_000_002),
    (StringType(), "é text"),
    (UUIDType(), uuid.UUID(int=1)),
    (FixedType(3), b"abc"),
    (BinaryType(), b"\x00\xff"),
    (DecimalType(9, 2), Decimal("-12.34")),
    (DecimalType(38, 3), Decimal("12345678901234567890.123")),
]
SCHEMA = Schema(*[NestedField(i + 1, f"c{i + 1}", t, required=False) for i, (t, _) in enumerate(TYPES)])
EVERY = PartitionSpec(
    *[PartitionField(i + 1, 1000 + i, IdentityTransform(), f"c{i + 1}") for i in range(len(TYPES))],
    PartitionField(2, 1100, BucketTransform(16), "b"),
    PartitionField(8, 1101, DayTransform(), "d"),
    PartitionField(8, 1102, YearTransform(), "y"),
    PartitionField(3, 1103, VoidTransform(), "v"),
    spec_id=1,
)


def manifest(
    name: str,
    version: TableVersion,
    spec: PartitionSpec,
    codec: AvroCompressionCodec,
    partition: Callable[[int], Record],
    n: int,
    metrics: bool,
) -> ManifestFile:
    path = FOLDER / name
    with write_manifest(version, spec, SCHEMA, IO.new_output(str(path)), 42, codec) as out:
        for i in range(n):
            ids = range(1, 1 + i % 4) if metrics else ()
            file = DataFile.from_args(
                _table_format_version=2,
                content=DataFileContent.DATA,
                file_path=f"s3://bucket/table/data/{name}/{i:05d}.parquet",
                file_format=FileFormat.PARQUET,
                partition=partition(i),
                record_count=100 + i,
                file_size_in_bytes=1000 + i,
                column_sizes={k: 10 * k for k in ids} if metrics else None,
                value_counts=dict.fromkeys(ids, 100 + i) if metrics else None,
                null_value_counts=dict.fromkeys(ids, i) if metrics else None,
                nan_value_counts={} if metrics else None,
                lower_bounds={k: struct.pack("<q", i) for k in ids} if metrics else None,
                upper_bounds={k: struct.pack("<q", i + k) for k in ids} if metrics else None,
                key_metadata=None,
                split_offsets=[4, 4 + i] if i % 2 else None,
                equality_ids=None,
                sort_order_id=0 if i % 3 else None,
                spec_id=spec.spec_id,
            )
            out.add_entry(
                ManifestEntry.from_args(
                    _table_format_version=2,
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=42,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
            )
    made = out.to_manifest_file()
    made[0] = f"s3://bucket/table/metadata/{name}"  # its path
    return made


def every(i: int) -> Record:
    return Record(*([None] * len(EVERY.fields) if i == 1 else [v for _, v in TYPES] + [3, 19000, 53, None]))


def main() -> None:
    v2 = [
        manifest("every_partition_type.avro", 2, EVERY, "deflate", every, 3, True),
        manifest("unpartitioned_null.avro", 2, PartitionSpec(), "null", lambda i: Record(), 5, True),
        manifest("unpartitioned_no_metrics.avro", 2, PartitionSpec(), "deflate", lambda i: Record(), 5, False),
    ]
    v1 = [manifest("version_1.avro", 1, PartitionSpec(), "deflate", lambda i: Record(), 5, True)]
    for version, manifests in ((2, v2), (1, v1)):
        with write_manifest_list(
            version, IO.new_output(str(FOLDER / f"list_{version}.avro")), 42, 41, 7 if version == 2 else None, "deflate"
        ) as out:
            out.add_manifests(manifests)


if __name__ == "__main__":
    main()
