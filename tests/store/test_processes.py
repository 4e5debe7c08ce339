"""The store among processes: turns, kills, full disks, rights, and forks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from dpframe._ledger.sqlite import FileStore
from tests.store.files import add, bodies, output, posix, start

RACE = """
def work(name):
    for i in range(int(sys.argv[4])):
        with store.transaction():
            store.append("people", "debit", f"{name} {len(store.entries('people'))}")

store = open_store(path)  # the first one makes it
threads = [threading.Thread(target=work, args=[f"{os.getpid()}.{i}"]) for i in range(int(sys.argv[3]))]
[t.start() for t in threads], [t.join() for t in threads]
"""


@pytest.mark.scaled
def test_processes_take_turns(path, full):
    processes, threads, appends = (8, 8, 40) if full else (4, 4, 10)
    for process in [start(RACE, path, threads, appends) for _ in range(processes)]:
        assert output(process) == []
    found = [body.split() for body in bodies(FileStore(path))]
    assert [number for _, number in found] == [str(i) for i in range(processes * threads * appends)]
    assert len({name for name, _ in found}) == processes * threads


@posix
def test_killed_process_leaves_whole_transactions(path):
    add(FileStore(path), "1")
    code = """
store = open_store(path)
with store.transaction():
    for i in range(3000):  # more than SQLite keeps in memory, so the file has a part of it
        store.append("people", "debit", "x" * 3000)
    print("here", flush=True)
    time.sleep(100)
"""
    process = start(code, path)
    assert process.stdout.readline() == "here\n"
    assert path.stat().st_size > 2**20
    process.kill()
    process.communicate()
    assert path.with_name(path.name + "-journal").exists()
    store = FileStore(path)
    assert bodies(store) == ["1"]
    assert add(store, "2")[0].id == 2
    assert os.listdir(path.parent) == [path.name]


@posix
def test_full_disk_undoes_the_transaction(path):
    code = """
import resource
store = open_store(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with store.transaction():
        store.append("people", "debit", "2")
        try:
            for i in range(3000):
                store.append("people", "debit", "x" * 3000)
        except LedgerError as error:
            print("append")
except LedgerError as error:
    print("commit")
print(len(store.entries("people")))
"""
    add(FileStore(path), "1")
    assert output(start(code, path)) == ["append", "commit", "1"]
    assert bodies(FileStore(path)) == ["1"]


@posix
def test_read_only_places_are_refused():
    code = """
os.getuid() or os.setuid(65534)  # the administrator may write everything
for use in (lambda: FileStore(path), lambda: FileStore(path + "2")):
    try:
        use()
    except LedgerError:
        print("refused")
"""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        path = Path(folder, "ledger")
        add(FileStore(path), "1")
        for file, directory in ((0o444, 0o777), (0o666, 0o555), (0, 0o777)):
            path.chmod(file)
            os.chmod(folder, directory)
            number = 1 if directory == 0o777 else 2
            assert output(start(code, path)) == ["refused"] * number
            for extra in (p for p in Path(folder).iterdir() if p != path):
                extra.unlink()


@posix
def test_forked_child_uses_a_file_and_no_memory(path):
    code = """
def child(work):
    number = os.fork()
    if not number:
        work()
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0

def add(body):
    with store.transaction():
        store.append("people", "debit", body)

def refuse():
    for use in (memory.populations, lambda: memory.append("", "", ""), lambda: memory.entries("")):
        try:
            use()
        except SessionError:
            print("refused", flush=True)

store, memory = open_store(path), MemoryStore()
add("1")
child(lambda: add("2"))
child(lambda: open_store(path) is store and add("3"))
child(refuse)
add("4")
print(*(entry.body for entry in store.entries("people")))
"""
    assert output(start(code, path)) == ["refused"] * 3 + ["1", "2", "3", "4"]


@posix
def test_child_forked_inside_a_transaction_writes_nothing(path):
    code = """
module.PATIENCE = 0.5
store = open_store(path)
with store.transaction():
    store.append("people", "debit", "1")
    number = os.fork()
    if not number:
        for use in (store.populations, lambda: store.entries("people"), lambda: open_store(path + "2").populations()):
            try:
                use()
            except LedgerError as error:
                print("inside a transaction" in str(error), flush=True)
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0
"""
    assert output(start(code, path)) == ["True"] * 3
    assert bodies(FileStore(path)) == ["1"]


@posix
def test_fork_inside_a_transaction_harms_only_the_child(path):
    code = """
store = open_store(path)
with store.transaction():
    store.append("people", "debit", "1" * 3000)
    number = os.fork()
    if not number:
        for use in (lambda: store.append("people", "debit", "2"), lambda: store.entries("people")):
            try:
                use()
            except LedgerError:
                print("refused", flush=True)
        sys.exit(7)  # through the end of the transaction, and of the interpreter
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 7
    store.append("people", "debit", "3")
print(len(store.entries("people")))
"""
    assert output(start(code, path)) == ["refused", "refused", "2"]


@posix
def test_fork_waits_for_transactions_of_other_threads(path):
    code = """
import warnings
warnings.simplefilter("ignore")  # of threads and fork: it is what is tested
def work():
    with store.transaction():
        store.append("people", "debit", "1")
        inside.set()
        time.sleep(0.2)
        store.append("people", "debit", "2")

store, inside = open_store(path), threading.Event()
thread = threading.Thread(target=work)
thread.start()
inside.wait()
number = os.fork()
if not number:
    print(len(store.entries("people")), flush=True)
    os._exit(0)
os.waitpid(number, 0)
thread.join()
"""
    assert output(start(code, path)) == ["2"]
