"""The only part that knows all others: sources → entries → sessions → export, and what is saved in between."""
