"""Spark is told which columns of a table over files are never null.

Spark takes all columns of files for nullable, whatever the table says: each value that a rule asks
for is first looked up among the nulls, no condition on it reaches the index of the files, and it
has three outcomes. That was a fifth of the time of the rules over deliveries. What is told here was
looked at when the history was opened (:mod:`reports.analysis.files`).
"""

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def with_required(spark: SparkSession, table: str, optional: Collection[str]) -> DataFrame:
    """Return a table over files of which all columns are never null, but for the optional ones.

    There is no way to say so in SQL or Python: the relation of files is copied with another schema,
    through Spark's own Scala interface.
    """
    session = spark._jsparkSession  # noqa: SLF001
    plan = spark.table(table)._jdf.queryExecution().analyzed()  # noqa: SLF001
    files = plan.collectLeaves().apply(0).relation()
    known = files.copy(
        files.location(),
        _required(spark, files.partitionSchema(), optional),
        _required(spark, files.dataSchema(), optional),
        files.bucketSpec(),
        files.fileFormat(),
        files.options(),
        files.sparkSession(),
    )
    return DataFrame(session.baseRelationToDataFrame(known), spark)


def _required(spark: SparkSession, schema: Any, optional: Collection[str]) -> Any:
    assert spark._jvm is not None  # noqa: SLF001
    found = spark._jvm.org.apache.spark.sql.types.StructType()  # noqa: SLF001
    for field in schema.fields():
        found = found.add(field.name(), field.dataType(), field.name() in optional)
    return found
