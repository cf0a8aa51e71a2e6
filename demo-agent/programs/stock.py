"""A stock that counts its items once too often: the loop begins at the wrong end."""

ITEMS = [("bolt", 40, 0.12), ("nut", 60, 0.05), ("washer", 25, 0.02)]


def worth(items):
    total = 0.0
    for position in range(-1, len(items)):
        _, count, price = items[position]
        total += count * price
    return total


def main():
    total = worth(ITEMS)
    print(f"the stock is worth {total:.2f}")


if __name__ == "__main__":
    main()
