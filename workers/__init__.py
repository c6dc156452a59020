"""The Celery side."""
