"""What is said to GitHub and GitLab: below the configured URL alone, in bounded time (ADR 31)."""
