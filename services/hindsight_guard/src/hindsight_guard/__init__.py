"""Runs inside Hindsight and lets in only what OpenBot Memory signed."""
