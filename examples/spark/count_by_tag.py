"""How many messages of each tag a topic holds now, and how large they are.

rocketfleet spark submit examples/spark/count_by_tag.py 127.0.0.1:9876 orders
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def pipeline(spark: SparkSession, name_servers: str, topic: str) -> None:
    messages = spark.read.format("rocketmq").option("nameServers", name_servers).option("topic", topic).load()
    by_tag = messages.groupBy("tags").agg(f.count("*").alias("messages"), f.sum(f.length("body")).alias("bytes"))
    for row in by_tag.orderBy(f.desc("messages")).collect():
        print(f"{row.tags or '-'}\t{row.messages}\t{row.bytes}")
