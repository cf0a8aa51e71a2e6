"""Grades with their average; the last class is empty, and that is the bug."""


def average(grades):
    total = sum(grades)
    return total / len(grades)


def main():
    for name, grades in {"7a": [1, 2, 3], "7b": [2, 2], "7c": []}.items():
        print(name, average(grades))


if __name__ == "__main__":
    main()
