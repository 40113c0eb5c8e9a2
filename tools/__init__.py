"""Campaigns, generators and release tools for maintainers; nothing that the wheel needs."""
