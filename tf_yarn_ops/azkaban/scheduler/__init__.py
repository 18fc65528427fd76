"""The client of Azkaban's web server: it starts executions and waits for them; the job type needs none of it."""
