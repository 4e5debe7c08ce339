"""Races for budgets on a server, from two machines: each is spent exactly, and every answer has a debit of its own, whoever is
killed and whatever happens to the server meanwhile.

Two machines are two interpreters that share nothing but the server: other folders, other names, other users, and one comes by
a port where the other has a socket.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import ExitStack, suppress
from fractions import Fraction

import pytest

from dpframe import Accountant, BudgetExceeded, LedgerError
from dpframe._ledger import open_store
from dpframe._ledger.store import unpack
from tests.ledger.people import BOUNDS, KEYS, ROOT, people, posix, store_of
from tests.postgres import GRANTS

pytestmark = [posix, pytest.mark.extras]
ANSWER = struct.Struct("<q")
RACERS = 4  # of each machine


# One machine ----------------------------------------------------------------------------------------------------


def racer(url, number, places, patient, ready, gate, told):
    """Opens a session on a budget, waits for the start, and asks until the budget is gone. A patient one goes on when the server
    does not answer."""
    p, words = None, {"bounds": BOUNDS, "keys": KEYS, "because": "people of a test"}
    while True:
        try:
            if p is None:
                p = people(20, seed=number).dp.open(
                    1, ledger=url, population=f"race {number}", **words
                )
                os.write(ready, b".")
                os.read(gate, 1)
            answer = int(p.count(epsilon=Fraction(1, places), mechanism="laplace", fresh=True))
            os.write(told, ANSWER.pack(answer))
        except BudgetExceeded:
            return
        except LedgerError:
            if not patient:
                raise


def machine(url):
    """Reads a race from each line of its input, says when its racers are ready, and what came of it. It has the ledger open, and
    so have its racers, as forked children."""
    open_store(url)
    for line in sys.stdin:
        race = json.loads(line)
        (ready, is_ready), (gate, start), (told, tell) = (os.pipe() for _ in range(3))

        def fork(race=race, fds=(is_ready, gate, tell), start=start):
            number = os.fork()
            if number:
                return number
            try:
                with suppress(OSError):  # the race has begun
                    os.close(start)
                racer(url, race["number"], race["places"], race["patient"], *fds)
                os._exit(0)
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(1)

        alive, ended, draw = {fork() for _ in range(RACERS)}, [], random.Random(race["number"])
        for _ in range(RACERS):
            os.read(ready, 1)
        print("ready", flush=True)
        sys.stdin.readline()
        os.close(start)
        for _ in range(race["kills"]):
            time.sleep(draw.uniform(0.001, 0.04))
            victim = draw.choice(sorted(alive))
            os.kill(victim, signal.SIGKILL)
            alive.remove(victim)
            ended.append(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]))
            alive.add(fork())
        ended += [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in alive]
        for one in (is_ready, gate, tell):
            os.close(one)
        with os.fdopen(told, "rb") as pipe:
            answers = [answer for (answer,) in ANSWER.iter_unpack(pipe.read())]
        os.close(ready)
        print(json.dumps({"ended": ended, "answers": answers}), flush=True)


MACHINE = "import sys; from tests.ledger.test_server_races import machine; machine(sys.argv[1])"
LIVES = (
    {"HOSTNAME": "one", "TZ": "Asia/Tokyo", "LANG": "C", "PYTHONHASHSEED": "1"},
    {"HOSTNAME": "two", "TZ": "America/Lima", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"},
)


@pytest.fixture
def database(postgres, tmp_path):
    """A database with a ledger that a colleague may use, too."""
    name = f"{tmp_path.parent.name}-{tmp_path.name}"[-60:]
    store_of(postgres.create(name))
    if not postgres.sql("postgres", "SELECT 1 FROM pg_roles WHERE rolname = 'colleague'"):
        postgres.sql("postgres", "CREATE ROLE colleague LOGIN")
    postgres.sql(name, *(grant.format("colleague") for grant in GRANTS))
    return name


@pytest.fixture
def machines(postgres, database, tmp_path):
    urls = postgres.url(database), postgres.url(database, "colleague", tcp=True)
    with ExitStack() as stack:
        made = []
        for url, life in zip(urls, LIVES, strict=True):
            home = tmp_path / life["HOSTNAME"]
            home.mkdir()
            places = {
                "HOME": str(home),
                "TMPDIR": str(home),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
            }
            command = [sys.executable, "-c", MACHINE, url]
            one = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=home,
                env={**life, **places},
                text=True,
                bufsize=1,
            )
            made.append(stack.enter_context(one))
        yield made
        for one in made:
            one.stdin.close()


def run(machines, number, places, kills=0, meanwhile=None):
    """A race: how the racers ended, and all that they were told."""
    for one in machines:
        spec = {
            "number": number,
            "places": places,
            "kills": kills,
            "patient": meanwhile is not None,
        }
        one.stdin.write(json.dumps(spec) + "\n")
    assert [one.stdout.readline() for one in machines] == ["ready\n"] * 2
    for one in machines:
        one.stdin.write("go\n")
    if meanwhile is not None:
        meanwhile()
    found = [json.loads(one.stdout.readline()) for one in machines]
    return [e for one in found for e in one["ended"]], Counter(
        a for one in found for a in one["answers"]
    )


# The books ------------------------------------------------------------------------------------------------------


def books(store, number):
    """The price of every debit of a race, and the answers on record."""
    entries = store.entries(f"race {number}")
    bodies = [(e.kind, json.loads(e.body)) for e in entries if e.kind in ("debit", "answer")]
    prices = [
        Fraction(plan["loss"]["epsilon"])
        for kind, b in bodies
        if kind == "debit"
        for plan in b["plans"]
    ]
    answers = Counter(int(unpack(b["raw"])[0][0, 0]) for kind, b in bodies if kind == "answer")
    return prices, answers


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("batch", range(20))
def test_eight_processes_on_two_machines_spend_every_budget_exactly(
    postgres, database, machines, full, batch
):
    """A thousand races in full; three questions fit each budget, and eight ask at once."""
    races, places, last = 50 if full else 15, 3, Counter()
    for number in range(1000 * batch, 1000 * batch + races):
        ended, told = run(machines, number, places)
        assert ended == [0] * 2 * RACERS
        prices, recorded = books(store_of(postgres.url(database)), number)
        assert prices == [Fraction(1, places)] * places
        assert told == recorded
        assert told.total() == places
        last += told
    assert len(last) > 3  # new noise for each: of scale 3
    account = Accountant(1, ledger=postgres.url(database), population=f"race {number}")
    assert account.budget.remaining == 0


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("batch", range(5))
def test_killed_clients_never_answer_without_a_debit(postgres, database, machines, full, batch):
    """SIGKILL at any moment, in transactions and between debit and answer."""
    unanswered = killed = 0
    for number in range(1000 * batch, 1000 * batch + (20 if full else 4)):
        ended, told = run(machines, number, 40, kills=10)
        assert set(ended) <= {0, -signal.SIGKILL}
        killed += ended.count(-signal.SIGKILL)
        unanswered += check(books(store_of(postgres.url(database)), number), told, 40)
    assert killed > 20
    assert unanswered > 0  # some died between their debit and their answer


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("batch", range(5))
def test_a_server_that_crashes_and_comes_back_forgets_no_debit(
    postgres, database, machines, full, batch
):
    """Restarts in the middle, and on top of them killed clients."""

    def restarts():
        for _ in range(3):
            time.sleep(draw.uniform(0.05, 0.6))
            postgres.restart()

    draw = random.Random(batch)
    for number in range(1000 * batch, 1000 * batch + (10 if full else 2)):
        kills = 5 * (number % 2)
        ended, told = run(machines, number, 40, kills, restarts)
        assert set(ended) <= {0, -signal.SIGKILL}
        check(books(store_of(postgres.url(database)), number), told, 40)


def check(found, told, places):
    """Never above the budget, every answer on record and with a debit of its own; how many debits were for nothing."""
    prices, recorded = found
    assert sum(prices) == 1  # racers asked until it was gone
    assert len(prices) == places
    assert told <= recorded
    assert recorded.total() <= places
    return places - told.total()
