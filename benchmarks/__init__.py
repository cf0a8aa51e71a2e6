"""What the bridge costs, beside what people would use instead: `make bench`."""
