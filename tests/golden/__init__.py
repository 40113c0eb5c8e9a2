"""Golden bytes: our codec beside the Java serializer of the same Kafka release."""
