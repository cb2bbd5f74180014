"""Where the data is and where questions run: an engine takes a tree and returns an Arrow table of
exact aggregates.

    engine      what a database must do for us: `Store` and `Engine`; stores names those there are
    source      a folder of Parquet or CSV files, a .duckdb file, tables from Python: what is there,
                and has it changed
    files       how one file is read; frames does so for tables from Python
    encode      the SQL that moves a value into its public domain
    parts       a table's rows by their schemas, each read by itself
    order       which rows of a person come first
    layout      what a snapshot looks like; store keeps snapshots in a folder
    prepare     a source into a numbered snapshot: owners resolved, values on their grid, at most
                max_rows a person
    verify      a finished snapshot against its policy
    arrivals    a live source, for releases
    spelling    trees as SQL, by dialect
    spark       questions on a cluster, and snapshots of Parquet that its workers prepare
    locked      the only maker of connections
    duckdb      questions on a snapshot, locked down, with limits of time and memory; twin is the
                same without rows
    workbench   SQL on what is released
    survey      what a schema alone tells: check a policy against its source, or begin one

Only release and curator may call `fetch`: what it returns is exact.
"""
