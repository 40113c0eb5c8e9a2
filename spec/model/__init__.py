"""The share group as an executable model. Pure: no I/O, no clock, no randomness.

Start with :mod:`spec.model.table`, the states of one record and the theory of operation. Around it:

- :mod:`~spec.model.partition` judges what was seen of one share-partition (``SharePartition``),
  and :mod:`~spec.model.partition` feeds it whole histories;
- :mod:`~spec.model.leader` acts as a share-partition leader, for the reference broker and for
  generating histories;
- :mod:`~spec.model.durable` is the share coordinator's state: epochs, snapshots, combining;
- :mod:`~spec.model.membership` acts as the group's coordinator: membership, epochs, assignments;
- :mod:`~spec.model.release` and :mod:`~spec.model.settings` say what differs and why.
"""
