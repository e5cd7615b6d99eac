"""What the scripts' flags share: wrong usage is one line on stderr and exit status 2, as with the programs."""
import argparse
import re


class Flags(argparse.ArgumentParser):
    """argparse's parser prints the usage as well, over several lines."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (see --help)\n")


def whole(least, most):
    """A type for flags: whole numbers from `least` to `most`."""
    def number(text):
        # Longer ones are out of any range, and Python is slow to read them.
        if not re.fullmatch(r"-?[0-9]{1,20}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"\"{text}\" is not a whole number from {least} to {most}")
        return int(text)
    return number


def real(least, most):
    """A type for flags: numbers from `least` to `most`."""
    def number(text):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from {least} to {most}")
        return value
    return number


def several(kind):
    """A type for flags: some of another type, with commas between them."""
    return lambda text: [kind(piece) for piece in text.split(",")]
