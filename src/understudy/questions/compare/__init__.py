"""Where controllers of several profiles and releases part over the same partitions, and why.

``controllers`` says which are compared and gives each the snapshot in its own terms, so that one
replay answers for all; ``differences`` holds the outcomes against each other, field by field; and
``rules`` names the reason for each way they part.
"""
