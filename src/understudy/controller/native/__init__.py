"""A failover over whole snapshots at once, as Spark column expressions."""
