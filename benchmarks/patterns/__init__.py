"""Share group, consumer group and KMQ side by side: the same workload and faults on one cluster.

    python -m benchmarks.patterns --target kafka:4.4.0 --brokers 3 --out DIR

Members and producers are processes of their own over one client library, confluent-kafka, so that
what differs is the system and not the library.

    workload   what is asked of members and producers, as values
    systems    the three ways to get records and to settle them       (in the members' environment)
    member     a process that works on records                        (in the members' environment)
    producer   a process that produces them                           (in the members' environment)
    scenes     the scenarios
    stage      carries a scenario out on a cluster
    events     what the processes wrote down
    measures   numbers from events
    promises   the invariants, judged by the oracle over a history made of the events
    results    the document that comes out
    page       the page of the documentation that is made of such documents
"""
