"""A topic into Parquet files, a directory a day, as consumer group `orders-archive`. Each message ends up there once.

rocketfleet spark submit examples/spark/orders_to_parquet.py 127.0.0.1:9876 orders /data/orders
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def pipeline(spark: SparkSession, name_servers: str, topic: str, directory: str) -> None:
    messages = (
        spark.readStream.format("rocketmq")
        .option("nameServers", name_servers)
        .option("topic", topic)
        .option("group", "orders-archive")
        .option("startingOffsets", "committed")  # a new group: from the beginning; else where the group stands
        .option("maxOffsetsPerTrigger", "100000")
        .load()
    )
    days = messages.withColumn("day", f.to_date("storeTime"))
    (
        days.writeStream.format("parquet")
        .partitionBy("day")
        .option("checkpointLocation", f"{directory}/_checkpoint")
        .trigger(processingTime="10 seconds")
        .start(f"{directory}/messages")
    )
