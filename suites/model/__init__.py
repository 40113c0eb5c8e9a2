"""The model in lock-step with a broker: Hypothesis chooses what members do; no fixed example."""
