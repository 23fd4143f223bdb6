"""An open file that processes get from the one that starts them: a descriptor, on Windows a handle."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def name_for_children(descriptor: int) -> int:
    """The number under which a process that is started with `apart` finds the open file."""
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.get_osfhandle(descriptor)
    return descriptor


def apart(descriptor: int) -> dict[str, Any]:
    """Arguments of `Popen`: the process inherits this open file and no other, and is the first of a group of its own.

    So what it starts can be ended with it, and Ctrl-C comes to the launcher alone.
    """
    if sys.platform == "win32":
        handle = name_for_children(descriptor)
        os.set_handle_inheritable(handle, True)
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})
        return {"startupinfo": startup, "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"pass_fds": (descriptor,), "start_new_session": True}


def inherited(name: int) -> int:
    """The descriptor of an open file that this process was started with; what it starts does not get it."""
    if sys.platform == "win32":
        import msvcrt

        os.set_handle_inheritable(name, False)
        return msvcrt.open_osfhandle(name, os.O_RDONLY)
    os.set_inheritable(name, False)
    return name
