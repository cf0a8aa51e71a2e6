"""Tests of following, finding and ordering logs, on real files."""
