"""Sums factorials: small enough to step through, with a recursion to stop in."""


def factorial(n: int) -> int:
    if n < 2:
        return 1
    smaller = factorial(n - 1)
    return n * smaller


def main() -> int:
    total = 0
    for n in range(5):
        total += factorial(n)
        print(f"after {n}! the total is {total}")  # noqa: T201
    return total


if __name__ == "__main__":
    main()
