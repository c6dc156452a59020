"""Asking a Celery worker for a task without loading Celery: protocol 2, JSON, kombu's Redis transport.

https://docs.celeryq.dev/en/stable/internals/protocol.html describes the headers and the body.
"""

from __future__ import annotations

import base64
import json
import os
import re
import uuid
from collections.abc import Sequence
from functools import lru_cache

REPLAY_TASK = "workers.tasks.replay_captures"

_EMBED = json.dumps({"callbacks": None, "errbacks": None, "chain": None, "chord": None})


def task_message(task: str, ids: Sequence[str], *, queue: str) -> str:
    """A Celery protocol-2 message as kombu's Redis transport stores it, asking for `task(ids)`."""
    filled = {
        "body": base64.b64encode(f"[[{json.dumps(list(ids))}], {{}}, {_EMBED}]".encode()).decode(),
        "id": str(uuid.uuid4()),
        "tag": str(uuid.uuid4()),
        "count": str(len(ids)),
    }
    parts = _form(task, queue, os.getpid())
    return "".join([filled[part] if is_blank else part for is_blank, part in parts])


def task_messages(task: str, ids: Sequence[str], *, queue: str, most: int) -> list[str]:
    """As many messages as it takes when each asks for at most so many ids."""
    return [task_message(task, ids[start : start + most], queue=queue) for start in range(0, len(ids), most)]


@lru_cache(maxsize=64)  # the proxy writes thousands that differ in six places
def _form(task: str, queue: str, pid: int) -> tuple[tuple[bool, str], ...]:
    """The message as text and blanks to be filled in, which are true and the blank's name."""
    mark = uuid.uuid4().hex  # in no task's or queue's name
    body, id, tag, count = (f"{mark}{blank}{mark}" for blank in ("body", "id", "tag", "count"))
    headers: dict[str, object] = {
        "lang": "py",
        "task": task,
        "id": id,
        "root_id": id,
        "parent_id": None,
        "group": None,
        "group_index": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": f"({count} captures,)",
        "kwargsrepr": "{}",
        "origin": f"proxy@{pid}",
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }
    properties = {
        "correlation_id": id,
        "reply_to": "",
        "delivery_mode": 2,
        # The default exchange: a message that was never acknowledged goes back to the queue of its
        # routing key.
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": tag,
    }
    text = json.dumps(
        {
            "body": body,
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    )
    pieces = re.split(f"{mark}([a-z]+){mark}", text)
    return tuple((bool(number % 2), piece) for number, piece in enumerate(pieces))
