"""Asking a Celery worker for a task without loading Celery: protocol 2, JSON, kombu's Redis transport.

https://docs.celeryq.dev/en/stable/internals/protocol.html describes the headers and the body.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Sequence

REPLAY_TASK = "workers.tasks.replay_captures"


def task_message(task: str, ids: Sequence[str], *, queue: str) -> str:
    """A Celery protocol-2 message as kombu's Redis transport stores it, asking for `task(ids)`."""
    task_id = str(uuid.uuid4())
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    body = base64.b64encode(json.dumps([[list(ids)], {}, embed]).encode()).decode()
    headers: dict[str, object] = {
        "lang": "py",
        "task": task,
        "id": task_id,
        "root_id": task_id,
        "parent_id": None,
        "group": None,
        "group_index": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": f"({len(ids)} captures,)",
        "kwargsrepr": "{}",
        "origin": f"proxy@{os.getpid()}",
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }
    properties = {
        "correlation_id": task_id,
        "reply_to": "",
        "delivery_mode": 2,
        # The default exchange: a message that was never acknowledged goes back to the queue of its
        # routing key.
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": str(uuid.uuid4()),
    }
    return json.dumps(
        {
            "body": body,
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    )
