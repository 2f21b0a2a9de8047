"""Writes Iceberg tables with equality deletes, position deletes and deletion vectors.

pyiceberg cannot commit delete files. A TableWriter writes the data, delete and
Puffin files, manifests and manifest lists itself, with pyiceberg's Avro classes,
and commits the snapshot through the table's catalog:

    writer = TableWriter.create(catalog, "db.events", schema, format_version=2)
    writer.append(rows)                              # data files
    writer.delete_equal(["id"], keys)                # rows whose key equals one of keys
    writer.delete_positions({path: [0, 7]})          # rows by file and position
    writer.delete_vector({path: [0, 7]})             # the same as deletion vectors (format version 3)
    writer.commit(data=[...], deletes=[...])         # files made by the *_file methods, in one snapshot

Unpartitioned tables and, with partition=Record(...), partitioned ones.
"""

from __future__ import annotations

import json
import struct
import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    construct_partition_summaries,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from pyiceberg.typedef import IcebergBaseModel, Record
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap

POSITION_DELETE_SCHEMA = Schema(
    NestedField(2147483546, "file_path", StringType(), required=True),
    NestedField(2147483545, "pos", LongType(), required=True),
)
NO_PARTITION = Record()


class TableWriter:
    """Adds snapshots to one table. Each method that changes the table is one commit."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def create(
        cls,
        catalog: Catalog,
        identifier: str,
        schema: Schema | pa.Schema,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> TableWriter:
        """Create the table; options go to pyiceberg's create_table."""
        properties = {**(properties or {}), "format-version": str(min(format_version, 2))}
        writer = cls(catalog.create_table(identifier, schema=schema, properties=properties, **options))
        if format_version == 3:
            upgraded = {**json.loads(writer.table.metadata.model_dump_json()), "format-version": 3, "next-row-id": 0}
            writer._publish(TableMetadataUtil.parse_obj(upgraded))
        return writer

    # -- commits

    def append(self, rows: pa.Table, partition: Record = NO_PARTITION, **options: Any) -> DataFile:
        """One data file; returns it."""
        file = self.data_file(rows, partition, **options)
        self.commit(data=[file])
        return file

    def delete_equal(self, columns: Sequence[str], keys: pa.Table, partition: Record = NO_PARTITION) -> DataFile:
        """One equality-delete file on the columns (dotted names for fields of structs are not supported)."""
        file = self.equality_delete_file(columns, keys, partition)
        self.commit(deletes=[file])
        return file

    def delete_positions(self, positions: Mapping[str, Sequence[int]], partition: Record = NO_PARTITION) -> DataFile:
        """One position-delete file."""
        file = self.position_delete_file(positions, partition)
        self.commit(deletes=[file])
        return file

    def delete_vector(self, positions: Mapping[str, Sequence[int]], partition: Record = NO_PARTITION) -> list[DataFile]:
        """One Puffin file with a deletion vector for each data file."""
        files = self.deletion_vectors(positions, partition)
        self.commit(deletes=files)
        return files

    # -- files

    def data_file(self, rows: pa.Table, partition: Record = NO_PARTITION, **options: Any) -> DataFile:
        """Write a data file. options go to pyarrow's Parquet writer."""
        schema = self.table.schema()
        arrow = schema_to_pyarrow(schema)
        columns = {name: rows.column(name) for name in rows.column_names}
        length = rows.num_rows
        arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(length, f.type) for f in arrow]
        return self._parquet(DataFileContent.DATA, schema, pa.table(arrays, schema=arrow), partition, None, options)

    def equality_delete_file(
        self, columns: Sequence[str], keys: pa.Table, partition: Record = NO_PARTITION, schema: Schema | None = None
    ) -> DataFile:
        schema = schema or self.table.schema()
        fields = [schema.find_field(name) for name in columns]
        selected = Schema(*[NestedField(f.field_id, f.name, f.field_type, required=False) for f in fields])
        rows = keys.select(list(columns)).cast(schema_to_pyarrow(selected))
        ids = [field.field_id for field in fields]
        return self._parquet(DataFileContent.EQUALITY_DELETES, selected, rows, partition, ids, {})

    def position_delete_file(
        self, positions: Mapping[str, Sequence[int]], partition: Record = NO_PARTITION
    ) -> DataFile:
        pairs = sorted((path, pos) for path, rows in positions.items() for pos in rows)
        rows = pa.table(
            [pa.array([path for path, _ in pairs], pa.large_string()), pa.array([pos for _, pos in pairs], pa.int64())],
            schema=schema_to_pyarrow(POSITION_DELETE_SCHEMA),
        )
        return self._parquet(DataFileContent.POSITION_DELETES, POSITION_DELETE_SCHEMA, rows, partition, None, {})

    def deletion_vectors(
        self, positions: Mapping[str, Sequence[int]], partition: Record = NO_PARTITION
    ) -> list[DataFile]:
        location = self._location("data", "puffin")
        body, blobs = bytearray(b"PFA1"), []
        for path, rows in positions.items():
            blob = deletion_vector_blob(rows)
            blobs.append((path, len(body), len(blob), len(set(rows))))
            body += blob
        body += puffin_footer(blobs)
        with self.table.io.new_output(location).create() as stream:
            stream.write(bytes(body))
        return [
            self._file(
                content=DataFileContent.POSITION_DELETES,
                file_path=location,
                file_format=FileFormat.PUFFIN,
                partition=partition,
                record_count=count,
                file_size_in_bytes=len(body),
                referenced_data_file=path,
                content_offset=offset,
                content_size_in_bytes=size,
            )
            for path, offset, size, count in blobs
        ]

    def _parquet(
        self,
        content: DataFileContent,
        schema: Schema,
        rows: pa.Table,
        partition: Record,
        equality_ids: list[int] | None,
        options: Mapping[str, Any],
    ) -> DataFile:
        location = self._location("data", "parquet")
        with (
            self.table.io.new_output(location).create() as stream,
            pq.ParquetWriter(
                stream, rows.schema, **{"compression": "zstd", "store_schema": False, **_writer_options(options)}
            ) as writer,
        ):
            writer.write_table(rows, row_group_size=options.get("row_group_size"))
        size = len(self.table.io.new_input(location))
        with self.table.io.new_input(location).open() as stream:
            metadata = pq.read_metadata(stream)
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=metadata,
            stats_columns=compute_statistics_plan(schema, self.table.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        )
        return self._file(
            content=content,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=partition,
            file_size_in_bytes=size,
            equality_ids=equality_ids,
            **statistics.to_serialized_dict(),
        )

    def _file(self, **values: Any) -> DataFile:
        file = DataFile.from_args(_table_format_version=self.table.format_version, **values)
        file.spec_id = self.table.spec().spec_id
        return file

    def _location(self, folder: str, suffix: str) -> str:
        return f"{self.table.location()}/{folder}/{uuid.uuid4()}.{suffix}"

    # -- snapshots

    def commit(self, data: Sequence[DataFile] = (), deletes: Sequence[DataFile] = (), keep: bool = True) -> None:
        """One snapshot that adds the files; keep=False starts from an empty table."""
        table = self.table
        parent = table.current_snapshot()
        snapshot_id = uuid.uuid4().int >> 66
        sequence = table.metadata.last_sequence_number + 1
        manifests = list(parent.manifests(table.io)) if parent is not None and keep else []
        next_row_id = getattr(table.metadata, "next_row_id", None) or 0
        rows = sum(file.record_count for file in data)
        for content, files in ((ManifestContent.DATA, data), (ManifestContent.DELETES, deletes)):
            if files:
                first_row_id = next_row_id if content == ManifestContent.DATA else None
                manifests.append(self._manifest(content, files, snapshot_id, sequence, first_row_id))
        manifest_list = self._manifest_list(manifests, snapshot_id, parent, sequence)
        operation = Operation.APPEND if not deletes else Operation.DELETE if not data else Operation.OVERWRITE
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent is not None else None,
            sequence_number=sequence,
            timestamp_ms=max(int(time.time() * 1000), table.metadata.last_updated_ms + 1),
            manifest_list=manifest_list,
            summary=Summary(operation),
            schema_id=table.metadata.current_schema_id,
            **({"first_row_id": next_row_id, "added_rows": rows} if table.format_version >= 3 else {}),
        )
        self._publish(
            update_table_metadata(
                table.metadata,
                (
                    AddSnapshotUpdate(snapshot=snapshot),
                    SetSnapshotRefUpdate(snapshot_id=snapshot_id, ref_name="main", type="branch"),
                ),
            )
        )

    def _publish(self, metadata: TableMetadata) -> None:
        """Make new metadata current.

        Not through the table's own commit, because pyiceberg does not write
        metadata of format version 3.
        """
        table = self.table
        location = f"{table.location()}/metadata/{uuid.uuid4()}.metadata.json"
        with table.io.new_output(location).create() as stream:
            stream.write(IcebergBaseModel.model_dump_json(metadata).encode())
        table.catalog.drop_table(table.name())
        self.table = table.catalog.register_table(table.name(), location)

    def _manifest(
        self,
        content: ManifestContent,
        files: Sequence[DataFile],
        snapshot_id: int,
        sequence: int,
        first_row_id: int | None,
    ) -> ManifestFile:
        table, version = self.table, self.table.format_version
        spec, schema = table.spec(), table.schema()
        entries = [
            ManifestEntry.from_args(
                _table_format_version=version,
                status=ManifestEntryStatus.ADDED,
                snapshot_id=snapshot_id,
                sequence_number=None,  # inherited from the manifest
                file_sequence_number=None,
                data_file=file,
            )
            for file in files
        ]
        location = self._location("metadata", "avro")
        output = table.io.new_output(location)
        data_file = data_file_with_partition(spec.partition_type(schema), version)
        with AvroOutputFile[ManifestEntry](
            output_file=output,
            file_schema=manifest_entry_schema_with_data_file(version, data_file),
            schema_name="manifest_entry",
            metadata={
                "schema": schema.model_dump_json(),
                "partition-spec": json.dumps([json.loads(field.model_dump_json()) for field in spec.fields]),
                "partition-spec-id": str(spec.spec_id),
                "format-version": str(version),
                "content": "data" if content == ManifestContent.DATA else "deletes",
                "avro.codec": "deflate",
            },
        ) as writer:
            writer.write_block(entries)
        return ManifestFile.from_args(
            _table_format_version=version,
            manifest_path=location,
            manifest_length=len(table.io.new_input(location)),
            partition_spec_id=spec.spec_id,
            content=content,
            sequence_number=sequence,
            min_sequence_number=sequence,
            added_snapshot_id=snapshot_id,
            added_files_count=len(files),
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=sum(file.record_count for file in files),
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=construct_partition_summaries(spec, schema, [file.partition for file in files]),
            key_metadata=None,
            **({"first_row_id": first_row_id} if version >= 3 else {}),
        )

    def _manifest_list(
        self, manifests: Sequence[ManifestFile], snapshot_id: int, parent: Snapshot | None, sequence: int
    ) -> str:
        version = self.table.format_version
        location = self._location("metadata", "avro")
        with AvroOutputFile[ManifestFile](
            output_file=self.table.io.new_output(location),
            file_schema=MANIFEST_LIST_FILE_SCHEMAS[version],
            schema_name="manifest_file",
            metadata={
                "snapshot-id": str(snapshot_id),
                "parent-snapshot-id": str(parent.snapshot_id) if parent is not None else "null",
                "sequence-number": str(sequence),
                "format-version": str(version),
                "avro.codec": "deflate",
            },
        ) as writer:
            writer.write_block(
                [_padded(manifest, len(MANIFEST_LIST_FILE_SCHEMAS[version].fields)) for manifest in manifests]
            )
        return location


def _padded(manifest: ManifestFile, width: int) -> ManifestFile:
    """pyiceberg reads manifest lists as version 2; what version 3 adds is unknown to it and becomes null."""
    missing = width - len(manifest._data)
    if missing > 0:
        manifest = ManifestFile(*manifest._data, *[None] * missing)
    return manifest


def _writer_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "row_group_size"}


def deletion_vector_blob(positions: Sequence[int]) -> bytes:
    """A deletion-vector-v1 blob: length, magic, 64-bit roaring bitmap, CRC."""
    by_key: dict[int, list[int]] = {}
    for position in positions:
        by_key.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    bitmap = struct.pack("<Q", len(by_key))
    for key in sorted(by_key):
        bitmap += struct.pack("<I", key) + BitMap(by_key[key]).serialize()
    content = b"\xd1\xd3\x39\x64" + bitmap
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def puffin_footer(blobs: Sequence[tuple[str, int, int, int]]) -> bytes:
    """The footer of a Puffin file whose deletion vectors are (data file, offset, length, cardinality)."""
    payload = json.dumps(
        {
            "blobs": [
                {
                    "type": "deletion-vector-v1",
                    "fields": [2147483645],
                    "snapshot-id": -1,
                    "sequence-number": -1,
                    "offset": offset,
                    "length": length,
                    "properties": {"referenced-data-file": path, "cardinality": str(cardinality)},
                }
                for path, offset, length, cardinality in blobs
            ]
        }
    ).encode()
    return b"PFA1" + payload + struct.pack("<i", len(payload)) + b"\0\0\0\0" + b"PFA1"
