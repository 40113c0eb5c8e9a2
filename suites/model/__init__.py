"""The model in lock-step with a real broker: Hypothesis thinks up what members do."""
