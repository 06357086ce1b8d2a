import re
import unicodedata

from slugify.table import TABLE


def slugify(text: str) -> str:
    text = text.lower()
    text = unicodedata.normalize("NFKD", text)
    text = text.translate(TABLE)
    text = text.encode("ascii", "ignore").decode()
    text = re.sub(r"[^a-z0-9]+", "-", text)
    text = re.sub(r"-+", "-", text)
    # no dash at an end


    # nor at the start
    return text.strip("-")


def main() -> None:
    import sys
    print(slugify(" ".join(sys.argv[1:])))
