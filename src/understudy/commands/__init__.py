"""What the ``understudy`` command can do: one module per verb, each with its ``VERB``."""
