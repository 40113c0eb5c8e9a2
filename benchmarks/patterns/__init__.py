"""Share group, consumer group and KMQ side by side: the same workload and faults on one cluster.

    python -m benchmarks.patterns --target kafka:4.4.0 --brokers 3 --out DIR

Members and producers are processes of their own over one client library, confluent-kafka, so that
what differs is the system and not the library.

    workload   what is asked of members and producers, as values
    member     the three ways to get records and to settle them, and a process that uses one
    producer   a process that produces records; both run in confluent-kafka's own environment
    stage      the scenarios, and how each is carried out on a cluster
    events     what the processes wrote down, and numbers from that
    results    the document that comes out, with the invariants, which the oracle judges
    page       the page of the documentation that is made of such documents
"""
