"""The format `rocketmq`, as Spark's Python data source API wants it: which reader and which writer for which use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from rocketfleet.spark.source import schema as columns
from rocketfleet.spark.source.errors import SourceError, in_one_sentence
from rocketfleet.spark.source.options import read_options, write_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class RocketMQDataSource(DataSource):
    """`spark.read.format("rocketmq")`, `spark.readStream`, `df.write`, `df.writeStream`."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return columns.DDL

    @in_one_sentence
    def reader(self, schema: StructType) -> DataSourceReader:
        from rocketfleet.spark.source.batch import BatchReader, FilteringBatchReader

        _check_schema(schema)
        options = read_options(self.options, streaming=False)
        return FilteringBatchReader(options) if options.filter_pushdown else BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from rocketfleet.spark.source.stream import RefusedStream, StreamReader

        try:
            _check_schema(schema)
            return StreamReader(read_options(self.options, streaming=True))
        except SourceError as error:
            return RefusedStream(str(error))

    @in_one_sentence
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from rocketfleet.spark.source.sink import BatchWriter, check_columns

        if overwrite:
            raise SourceError("a topic cannot be overwritten: use mode append")
        options = write_options(self.options)
        check_columns(schema, options)
        return BatchWriter(options)

    @in_one_sentence
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        from rocketfleet.spark.source.sink import StreamWriter, check_columns

        if overwrite:
            raise SourceError("a topic cannot be overwritten: use the output mode append or update")
        options = write_options(self.options)
        check_columns(schema, options)
        return StreamWriter(options)


def _check_schema(schema: StructType) -> None:
    if schema.fieldNames() != list(columns.COLUMNS):
        raise SourceError(
            f"the schema of rocketmq is fixed ({', '.join(columns.COLUMNS)}): leave .schema(…) out, and select columns"
        )
