"""The sweep of a broker: requests with every field at its edges, configs in every spelling."""
