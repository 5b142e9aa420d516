"""Drains the outbox to Hindsight and proves what was forgotten gone."""
