"""Write the texts of refusals in the golden answers anew: ``python -m tests.golden.refusals``.

Texts are not public, so they may change: the lists in them name every aggregate and mechanism. The
class of an error is public, so a refusal of another class is an error here.
"""

import json
import shutil
import tempfile
from pathlib import Path

from tests.golden.lines import SESSIONS, refused
from tests.golden.make import asked, opened, refusal

HOUSE = Path(__file__).parent / "house"


def rewrite() -> int:
    """Ask every refused line again, keep the texts that changed, and return their number."""
    answers = HOUSE / "answers.json"
    known, changed = json.loads(answers.read_text("utf-8")), 0
    with tempfile.TemporaryDirectory() as folder:
        ledger = shutil.copy(HOUSE / "ledger.db", folder)
        for session in SESSIONS:
            p = opened(session, Path(ledger))
            for line in refused():
                new, old = refusal(asked(p, line)), known[session][line]
                if new["type"] != old["type"]:
                    raise AssertionError(f"{line}: {new['type']}, and not {old['type']}")
                changed += new != old
                known[session][line] = new
    if changed:
        text = json.dumps(known, indent=1, ensure_ascii=False) + "\n"
        answers.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    print(f"{rewrite()} texts")
