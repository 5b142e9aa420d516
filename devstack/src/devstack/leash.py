"""A process that outlives its parent just long enough to end what the parent started.

Run as a script with a pipe on standard input. Each line is `hold PID SIGNAL` or `release PID`. When the pipe
closes, because the parent ended in whatever way, every process still held gets its signal, a few seconds, and
then its whole process group is killed. (PR_SET_PDEATHSIG would not do: it fires when the *thread* that
started the child ends, and reaches no grandchildren.)
"""

import os
import signal
import sys
import time

GRACE_S = 5.0


def _send(pid: int, number: int) -> bool:
    try:
        # A recycled pid is not the leader of its own group, save by rare accident.
        if os.getpgid(pid) != pid:
            return False
        os.kill(pid, number)
    except OSError:
        return False
    return True


def main() -> None:
    """Hold and release processes as told; end the held ones at end of input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: dict[int, int] = {}
    for line in sys.stdin:
        verb, pid, *rest = line.split()
        if verb == "hold":
            held[int(pid)] = int(rest[0])
        else:
            held.pop(int(pid), None)
    alive = [pid for pid, number in held.items() if _send(pid, number)]
    give_up = time.monotonic() + GRACE_S
    while any(_send(pid, 0) for pid in alive) and time.monotonic() < give_up:
        time.sleep(0.05)
    for pid in held:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            continue


if __name__ == "__main__":
    main()
