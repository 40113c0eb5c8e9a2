"""Campaigns and generators for maintainers; nothing that a user of the wheel needs."""
