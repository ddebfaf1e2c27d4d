"""A disk that is full: a clear error for who writes, and everyone else goes on."""

import os
import subprocess
import tempfile

from server import Server

SIZE = 160  # megabytes: room for the first log segments and little more


def full_disk(_):
    place = tempfile.mkdtemp(prefix="throng-small-disk-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", place],
                             capture_output=True, check=False)
    if mounted.returncode:
        os.rmdir(place)
        return "not tried: no right to mount a small disk"
    try:
        with Server("--memory", "16MB", dir=place) as server:
            try:
                _fill_and_go_on(server)
            except AssertionError as e:
                raise AssertionError(f"{e}\nthe server's log:\n{server.log_text()[-3000:]}") from e
    finally:
        subprocess.run(["umount", place], check=False)
        os.rmdir(place)
    return None


def _fill_and_go_on(server):
    server.sql("create table big (id int primary key, v text); create table small (id int primary key, n int); "
               "insert into small values (1, 0)")
    refused = None
    for batch in range(20):
        done = server.run("psql", "-Xq", "-v", "VERBOSITY=verbose", "-c",
                          f"insert into big select i, repeat('x', 500) from generate_series({batch}00001, {batch}20000) i",
                          code=None)
        if done.returncode:
            refused = done.stderr
            break
    assert refused and "53100" in refused and "No space left on device" in refused, refused
    whole = int(server.sql("select count(*) from big"))
    assert whole == batch * 20_000, f"{whole} rows after {batch} batches"
    assert server.sql("select n from small") == "0"
    # A checkpoint gives segments of the log back, which dropping the table then needs.
    server.sql("checkpoint")
    server.sql("drop table big")
    server.sql("update small set n = n + 1")
    server.sql("create table again as select i from generate_series(1, 10000) i")
    server.kill()
    server.start()
    assert server.sql("select (select n from small), (select count(*) from again)") == "1|10000"
    server.stop()
    server.check()


def checks():
    yield "disk: full", full_disk
