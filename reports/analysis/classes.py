"""Spark's planner and its tasks on this machine share what they compile.

Both compile the code of a query, each for its own class loader, although they are one process: all
of it was compiled twice. A task's loader finds all that the planner's does.
"""

from pyspark.sql import SparkSession

_TASKS = "Executor task"
_CALLED = "Thread-"
"""How the names of threads begin that run tasks, and of those that carry out calls from Python."""


def share_classes(spark: SparkSession) -> None:
    """Give the threads that plan, and those that these start later, the class loader of tasks."""
    java = spark._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    one = java.util.ArrayList()
    one.append(0)
    spark._jsc.parallelize(one).count()  # noqa: SLF001
    threads = {one.getName(): one for one in java.lang.Thread.getAllStackTraces().keySet()}
    loaders = [
        one.getContextClassLoader() for name, one in threads.items() if name.startswith(_TASKS)
    ]
    for name, one in threads.items() if loaders else ():
        if name.startswith(_CALLED):
            one.setContextClassLoader(loaders[0])
