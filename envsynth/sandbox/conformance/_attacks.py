"""Hostile and merely busy programs, in Python."""

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
time.sleep(float(sys.argv[2]))
"""
FORK_BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
MEMORY_HOG = """
held = []
while True:
    held.append(bytearray(b"x") * (16 << 20))
"""
MEMORY_HOGS = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(b"x") * (100 << 20)
        time.sleep(60)
time.sleep(60)
"""
BIG_FILES = """
import os, sys
for number in range(100):
    with open(f"{sys.argv[1]}/big{number}", "wb") as file:
        for _ in range(32):
            file.write(bytes(1 << 20))
            file.flush()
"""
MANY_FILES = """
import os, sys
number = 0
while True:
    os.makedirs(f"{sys.argv[1]}/{number // 1000}", exist_ok=True)
    open(f"{sys.argv[1]}/{number // 1000}/{number}", "wb").write(b"x" * 4000)
    number += 1
"""
REMOVED_BUT_OPEN = """
import os, time
held = []
for number in range(100):
    file = open("gone", "wb")
    os.unlink("gone")
    held.append(file)
    for _ in range(32):
        file.write(bytes(1 << 20))
    file.flush()
time.sleep(60)
"""
SHARED_MEMORY = """
import os, time
held = bytearray(b"x") * (150 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
time.sleep(1)
"""
DESCRIPTORS = """
import os
listed = map(int, os.listdir("/proc/self/fd"))
print([number for number in listed if number > 2 and os.path.exists(f"/proc/self/fd/{number}")])
"""
TWO_WORKERS = """
import os
for _ in range(2):
    if os.fork() == 0:
        sum(range(6_000_000))
        os._exit(0)
os.wait()
os.wait()
"""
