"""Builds the real parts that the tests run against."""
