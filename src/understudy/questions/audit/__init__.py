"""The audit: named rules over snapshots and over what happened from one to the next."""
