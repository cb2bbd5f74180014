"""Engines: they read sources, prepare snapshots and run questions. An engine takes a tree and
returns an Arrow table of exact aggregates.

    engine      the protocols of a database: `Store` and `Engine`
    stores      chooses the store of the engine that a policy names
    source      what a source holds, and whether it has changed: a folder of Parquet or CSV files, a
                .duckdb file, tables from Python
    files       reads one file; frames reads tables from Python
    readers/    reads SQLite, Excel, PostgreSQL, labelled files and lakes
    layout      the names and types inside a snapshot; snapshot has the notes about it
    spelling    writes trees as SQL; words has the words that dialects share
    advice      compares a policy with its source, for `discreet check`
    report      the curator's report of a snapshot
    drafts/     begins a policy, for `discreet init`
    limits/     limits of time, and the counted failure
    duckdb/     the embedded engine: preparing/ makes snapshots, engine answers questions, locked
                opens every connection, twin has the same tables without rows, workbench runs SQL
                on released tables
    postgres/   snapshots as schemas of a Postgres database
    spark/      snapshots of Parquet that a cluster's workers prepare, and questions on the cluster

Only `asking.view` and `audit.question` call `fetch`: it returns exact numbers.
"""
