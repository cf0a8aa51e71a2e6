"""Counts primes by trying every divisor, which is why it is slow."""


def is_prime(number):
    return all(number % divisor for divisor in range(2, number))


def main():
    found = [number for number in range(2, 1500) if is_prime(number)]
    print("primes below 1500:", len(found))


if __name__ == "__main__":
    main()
