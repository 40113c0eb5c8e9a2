"""Random small histories: legal ones, such with one edit, and whether any execution explains them.

``python -m tools.campaign histories`` holds both judges of histories against that truth.
"""
