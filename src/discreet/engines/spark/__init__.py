"""The engine Spark, through Spark Connect: a cluster prepares snapshots as Parquet files and
answers questions on them.
"""
