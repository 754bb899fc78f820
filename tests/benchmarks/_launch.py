"""Runs one command and tells what it took: `python -I -S _launch.py REPORT OUTPUT SECONDS COMMAND...`.

A process of its own, and a small one: the kernel counts the memory that a child had before it became another program,
too, so whoever measures must not be larger than what it measures.
"""

import json
import os
import signal
import sys


def main() -> None:
    """Run the command, with its standard output into OUTPUT; write CPU times, peak memory and exit code as JSON.

    After SECONDS it gets SIGALRM, which ends it: an alarm stays when another program begins.
    """
    report, output, seconds, *command = sys.argv[1:]
    pid = os.fork()
    if pid == 0:
        try:
            target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(target, 1)
            signal.alarm(int(seconds))
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error}\n".encode())
        finally:
            os._exit(127)
    _, status, usage = os.wait4(pid, 0)
    found = [usage.ru_utime, usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)]
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)


main()
