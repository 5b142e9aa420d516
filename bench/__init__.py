"""Measurements, as ratios against a baseline of the same run. They never decide a test."""
