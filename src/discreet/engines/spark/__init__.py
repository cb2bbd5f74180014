"""Spark, through Spark Connect: snapshots that a cluster prepares as Parquet, and questions that it
answers.
"""
