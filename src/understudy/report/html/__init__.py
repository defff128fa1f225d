"""Pages that stand alone: one HTML file, nothing loaded, everything escaped."""
